"""Whether each two samples of a batch meet where tensors are computed with element by element.

torch lets the last dimensions meet: `(B, 1) - (B,)` is a matrix with a number for each two samples. Whoever adds a
dimension means it; of others, one loss too many has a dimension too much.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import combinations

from ..script import Script
from .dimensions import meet_otherwise
from .layout import axis
from .operands import adds_dimension, are_pairs
from .operation_names import MEET
from .values import BROADCAST, COUPLES, Module, Value

# Losses that take a target of another shape than theirs, with a warning.
_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss"}
    | {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "PoissonNLLLoss"}
)
# Of two tensors; `x.max(1)` has one.
_ALSO = frozenset({"max", "min", "pow", "lerp", "fmod", "hypot", "atan2", "logaddexp", "xlogy", "isclose"})


def meeting(script: Script, nodes: Sequence[ast.expr], values: Iterable[Value]) -> str:
    """Why an operation on some operands couples samples; "" where it does not."""
    if any(are_pairs(script, one, other) for one, other in combinations(nodes, 2)):
        return COUPLES
    if not meet_otherwise(list(values)):
        return ""
    return COUPLES if any(adds_dimension(script, each) for each in nodes) else BROADCAST


def may_meet_otherwise(script: Script, nodes: Sequence[ast.expr], values: Sequence[Value]) -> bool:
    """Whether it is not seen that the two tensors of a loss have as many dimensions, of which a forward gave one more
    to one of them: `F.mse_loss(x, net(x))` of a network that returns `out.unsqueeze(1)`. Whoever adds one beside the
    loss means it."""
    if len(values) < 2 or any(adds_dimension(script, each) for each in nodes):
        return False
    one, other = values[:2]
    known = None not in (one.dimensions, other.dimensions)
    return one.widened is not other.widened and not known and all(axis(each.kind) == 0 for each in (one, other))


def lets_meet(name: str, function: Value) -> bool:
    """Whether a call computes with its operands element by element. name: the last one of what is called."""
    return name in MEET | _ALSO or is_of_pairs(name, function)


def is_of_pairs(name: str, function: Value) -> bool:
    """Whether a call makes a loss of two tensors, element by element, that may have other shapes than each other."""
    losses = [each.name.rpartition(".")[2] for each in function.things if isinstance(each, Module)]
    return name in _LOSSES or (bool(losses) and all(each in _LOSSES for each in losses))
