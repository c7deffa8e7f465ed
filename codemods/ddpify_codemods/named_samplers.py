"""Samplers of ddpify_runtime that are named where a loader is made, and what they stand for in one process."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from .runtime_names import runtime_name

SAMPLER = "DistributedSampler"


@dataclass(frozen=True, eq=False)
class NamedSampler:
    """A loader whose sampler is named in its call: `DataLoader(data, sampler=DistributedSampler(data, shuffle=True))`.

    word: that keyword. made: its value. dataset: what the loader loads; None where that is not seen. shuffle: what it
    stands for; None where the original says nothing of it, or False.
    """

    word: ast.keyword
    made: ast.Call
    dataset: ast.expr | None
    shuffle: ast.expr | None

    @property
    def named_here(self) -> ast.NamedExpr | None:
        """The data set, if it was given a name for the sampler: `DataLoader(data := Data(), …)`."""
        named = isinstance(self.dataset, ast.NamedExpr) and ast.unparse(self.dataset.target)
        return self.dataset if named == ast.unparse(self.made.args[0]) else None  # type: ignore[return-value]


def makes_sampler(node: ast.expr, names: Mapping[str, str]) -> TypeGuard[ast.Call]:
    """Whether an expression is a call of ddpify_runtime's DistributedSampler."""
    return isinstance(node, ast.Call) and runtime_name(node.func, names) == SAMPLER and bool(node.args)


def named_sampler(call: ast.Call, names: Mapping[str, str]) -> NamedSampler | None:
    """What a call shows of the sampler that it makes, if it is one of ddpify_runtime's."""
    word = next((each for each in call.keywords if each.arg == "sampler"), None)
    if word is None or not makes_sampler(word.value, names):
        return None
    made = word.value
    datasets = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "dataset")]
    shuffles = [each.value for each in made.keywords if each.arg == "shuffle"]
    shuffle = shuffles[0] if shuffles else ast.copy_location(ast.Constant(True), made)
    is_false = isinstance(shuffle, ast.Constant) and not shuffle.value
    return NamedSampler(word, made, datasets[0] if datasets else None, None if is_false else shuffle)
