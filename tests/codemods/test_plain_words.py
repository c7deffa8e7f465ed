"""The words of the engines in which the plain style writes."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.targets import TARGETS

WORDS = {target.words.name: target.words for target in TARGETS.values()}


@pytest.mark.parametrize("name", WORDS)
def test_words_are_source(name: str) -> None:
    words = WORDS[name]
    for code in (
        *words.imports,
        words.rank,
        words.world_size,
        words.barrier,
        words.all_reduce.format("x"),
        words.leave,
    ):
        ast.parse(code)
    ast.parse(words.is_rank_0, mode="eval")
    ast.parse(words.shard.replace("{}", "data"), mode="eval")
