"""What is made of samples that lie one behind the other in one tensor, where something tells which is whose.

`nn.EmbeddingBag` is told where each begins, a CTC loss how long each is: both compute with every sample alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .values import CONCATENATED, IN_ONE, OFFSETS, Value, made_of

_BAGS = frozenset({"torch.nn.EmbeddingBag", "torch.nn.functional.embedding_bag"})
_TOLD_LENGTHS = frozenset({"CTCLoss", "ctc_loss"})


def is_in_one(value: Value) -> bool:
    """Whether something has samples one behind the other, or tells where they begin."""
    return value.kind == "picked" and value.reason in IN_ONE


def bags(name: str, given: Sequence[Value]) -> Value | None:
    """What an embedding bag makes of samples and their offsets: a row for each; None for anything else."""
    if name not in _BAGS or not given or not (is_in_one(given[0]) and given[0].reason == CONCATENATED):
        return None
    if not any(is_in_one(each) and each.reason == OFFSETS for each in given[1:3]):
        return None
    return replace(made_of("rows", [each for each in given if each.is_local]), reason="")


def of_each_sample(loss: str, given: Sequence[Value]) -> list[Value]:
    """What a loss is given that takes the targets of each sample out of those of all."""
    if loss not in _TOLD_LENGTHS:
        return [*given]
    return [replace(each, kind="rows", reason="") if is_in_one(each) else each for each in given]
