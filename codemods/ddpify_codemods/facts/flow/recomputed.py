"""Layers that are computed again in the backward pass, in a way that DistributedDataParallel cannot take together with
`find_unused_parameters=True`: by torch.utils.checkpoint, which runs a backward pass within the other (reentrant)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..script import Script
from .program import Program

_CHECKPOINTS = frozenset(
    {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}  # use_reentrant=True
)


def reentrant(program: Program) -> Iterator[tuple[Script, ast.Call, bool]]:
    """The calls of a program that compute layers again in a backward pass of their own, and whether every run comes to
    them, as far as is known: no `if self.use_checkpoint:` around them decides it."""
    found = program.followed.found
    for script in program.scripts:
        for call in script.find(ast.Call):
            if script.qualified(call.func) not in _CHECKPOINTS or call not in found.visits:
                continue
            told = next((word.value for word in call.keywords if word.arg == "use_reentrant"), None)
            if isinstance(told, ast.Constant) and told.value is False:
                continue
            within = [call, *script.ancestors(call)]
            function = script.scope(call)
            own = within[: within.index(function)] if function in within else within
            ways = [each for each in own if isinstance(each, ast.If | ast.IfExp | ast.BoolOp)]
            told_way = all(isinstance(each, ast.If) and {*each.body, *each.orelse} & found.passed_by for each in ways)
            yield script, call, told_way and (told is None or isinstance(told, ast.Constant))
