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


def reentrant(program: Program) -> Iterator[tuple[Script, ast.Call]]:
    """The calls of a program that may compute layers again in a backward pass of their own."""
    for script in program.scripts:
        for call in script.find(ast.Call):
            if script.qualified(call.func) in _CHECKPOINTS and call in program.followed.found.visits:
                words = {word.arg: word.value for word in call.keywords}
                told = words.get("use_reentrant")
                if None not in words and not (isinstance(told, ast.Constant) and told.value is False):
                    yield script, call
