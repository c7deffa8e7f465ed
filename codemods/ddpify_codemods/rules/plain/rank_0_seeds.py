"""Seeds that are made of the clock or of the system's entropy are those of rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Finding, Replace
from ...targets import Target
from ..exact import seeds

_TAKEN = "take rank 0's seed on every rank"
# What the exact style writes, and what is written here.
_WORDS = {
    "rank_zero_value(os.urandom)(16)": "from_rank_0(os.urandom(16))",
    "rank_zero_value({})()": "from_rank_0({}())",
    "rank_zero_value({}.seed)()": "from_rank_0({}.seed())",
}


def rank_0_seeds(script: Script, target: Target) -> Iterator[Replace | Finding]:
    """Let all ranks seed their generators as rank 0 does."""
    for item in seeds.check(script, target):
        if not isinstance(item, Replace) or not item.imports:
            yield item  # type: ignore[misc]
            continue
        call = item.node if isinstance(item.node, ast.Call) else script.parents[item.node]
        assert isinstance(call, ast.Call)
        if call is not item.node:
            yield Replace(call, "from_rank_0({})", _TAKEN, modules=target.words.imports)
        else:
            template = item.template
            for written, here in _WORDS.items():
                template = template.replace(written, here)
            modules = (*item.modules, *target.words.imports)
            yield Replace(call, template, _TAKEN, modules=modules, parts=item.parts)
