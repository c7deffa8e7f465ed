"""Samples that a collate function puts one behind the other, and what tells where each begins."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import collated, is_apart
from ddpify_codemods.facts.flow.collate_parts import Part
from ddpify_codemods.facts.flow.concatenated import Concatenated, Offsets
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import COLLATE_HEAD

LOOP = """\
def c(batch):
    labels, texts, offsets = [], [], [0]
    for label, text in batch:
        labels.append(label)
        words = torch.tensor(text)
        texts.append(words)
        offsets.append(words.size(0))
    labels = torch.tensor(labels)
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    texts = torch.cat(texts)
    return texts.to("cpu"), offsets
"""
LENGTHS = """\
def c(batch):
    texts, labels = zip(*batch)
    lengths = [len(t) for t in texts]
    offsets = torch.tensor([0] + lengths[:-1]).cumsum(0)
    return torch.cat(texts), offsets
"""


def made(source: str) -> Part | None:
    script = script_of(COLLATE_HEAD + source)
    function = next(node for node in script.find(ast.FunctionDef) if node.name == "c")
    return collated(Function(function, script))


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        (LOOP, "", ""),
        (LOOP, "words.size(0)", "len(words)"),
        (LOOP, "[], [], [0]\n", "[], [], [0]\n    lengths = []\n"),
        (LOOP, "torch.cat(texts)", "torch.cat(texts, dim=0).long()"),
        (LOOP, "torch.tensor(offsets[:-1]).cumsum(dim=0)", "torch.cumsum(torch.LongTensor(offsets[:-1]), 0)"),
        (LENGTHS, "", ""),
        (LENGTHS, "[len(t) for t in texts]", "list(map(len, texts))"),
        (LENGTHS, "[0] + lengths[:-1]", "([0] + lengths)[:-1]"),
        (LENGTHS, "[0] + lengths[:-1]", "[0] + [t.numel() for t in texts][:-1]"),
        (
            LOOP.replace("offsets = torch.tensor(offsets[:-1])", "offsets = torch.tensor([0] + offsets[:-1])"),
            "[], [], [0]",
            "[], [], []",
        ),
    ],
)
def test_where_samples_begin(source: str, before: str, after: str) -> None:
    assert before in source
    part = made(source.replace(before, after, 1) if before else source)
    assert part == (Concatenated("texts"), Offsets("texts"))
    assert is_apart(part)


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        (LOOP, "words.size(0)", "len(text)"),
        (LOOP, "words.size(0)", "words.size(0) + 1"),
        (LOOP, "words.size(0)", "3"),
        (LOOP, "offsets[:-1]", "offsets"),
        (LOOP, "offsets[:-1]", "offsets[1:]"),
        (LOOP, "cumsum(dim=0)", "cumsum(dim=1)"),
        (LOOP, ".cumsum(dim=0)", ""),
        (LOOP, "[], [], [0]", "[], [], [1]"),
        (LOOP, "        texts.append(words)\n", "        if label:\n            texts.append(words)\n"),
        (LOOP, "        texts.append(words)\n", "        texts.append(words + offsets[-1])\n"),
        (LOOP, "        texts.append(words)\n", "        texts.append(words)\n        words = words[1:]\n"),
        (LOOP, "    labels = torch", "    offsets[0] = 1\n    labels = torch"),
        (LOOP, "    labels = torch", "    offsets.reverse()\n    labels = torch"),
        (LOOP, "    labels = torch", "    texts.reverse()\n    labels = torch"),
        (LOOP, "    labels = torch", "    offsets += [1]\n    labels = torch"),
        (LOOP, "torch.cat(texts)", "torch.cat(texts, dim=1)"),
        (LENGTHS, "lengths[:-1]", "lengths"),
        (LENGTHS, "for t in texts]", "for t in labels]"),
        (LENGTHS, "len(t) for", "len(t) + 1 for"),
        (LENGTHS, "    return", "    texts = [t[1:] for t in texts]\n    return"),
        (LENGTHS, "    offsets =", "    lengths.sort()\n    offsets ="),
        (LENGTHS, "    offsets =", "    lengths[0] = 1\n    offsets ="),
    ],
)
def test_what_tells_something_else(source: str, before: str, after: str) -> None:
    assert before in source
    part = made(source.replace(before, after, 1))
    assert part is None or not is_apart(part)
