"""Equal up to rounding: tensors, and what modules keep."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .. import accelerators
from ..forward.batch_norm import BatchNormCall
from ..torch_internals import BUFFERS, CALL, HOOKS, MODULES

# Relative difference (2-norm) up to which two float results of another summation order count as the same.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 5e-3}
GPU_TOLERANCE = 2e-3  # TF32 and the choice of another kernel for another batch size


def same(expected: Any, found: Any) -> bool:
    """Whether two tensors are equal up to rounding, in shape and kind too."""
    if not isinstance(expected, Tensor) or not isinstance(found, Tensor):
        return type(expected) is type(found)
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return False
    expected, found = expected.detach(), found.detach()
    if torch.equal(expected, found):  # for a tenth of what the difference costs
        return True
    if not expected.is_floating_point() or expected.dtype not in TOLERANCE:
        return False
    wide, other = torch.nan_to_num(expected.double()), torch.nan_to_num(found.double())
    return bool((wide - other).norm() <= tolerance(expected) * wide.norm())


def tolerance(tensor: Tensor) -> float:
    """The relative difference, in the 2-norm, up to which values of this kind count as equal."""
    limit = max(TOLERANCE.get(tensor.dtype, 0.0), _least if tensor.is_floating_point() else 0.0)
    return (max(limit, GPU_TOLERANCE) if accelerators.module_of(tensor.device.type) else limit) * _times


_times = 1.0


@contextmanager
def tolerance_times(times: float) -> Iterator[None]:
    """Allow this many times the tolerance."""
    global _times
    before, _times = _times, times
    try:
        yield
    finally:
        _times = before


_least = 0.0


@contextmanager
def rounded_as(dtype: torch.dtype | None) -> Iterator[None]:
    """Allow what rounding in this type makes of values of a finer one; None: nothing more."""
    global _least
    before, _least = _least, 0.0 if dtype is None else TOLERANCE[dtype]
    try:
        yield
    finally:
        _least = before


def different_state(one: nn.Module, other: nn.Module) -> Iterator[str]:
    """The names of what two copies of a module keep differently: buffers, frozen parameters, attributes of any kind.

    Statistics of routed batch normalisations are left out: these are synchronised where it counts.
    """
    for (name, part), (_, twin) in zip(one.named_modules(), other.named_modules(), strict=True):
        routed = type(vars(part).get(CALL)) is BatchNormCall
        for key, value in vars(part).items():
            if key in (MODULES, CALL) or (routed and key == BUFFERS):
                continue
            if HOOKS in key:  # a forward may set some, numbered otherwise on each copy; watched() looks at them
                continue
            if not _same_value(value, vars(twin).get(key)):
                yield f"{name}.{key}".strip(".")


def _same_value(one: Any, other: Any, depth: int = 4) -> bool:
    if one is other or not depth or isinstance(one, (nn.Module, torch.optim.Optimizer)):
        return True  # of an optimizer that a forward steps, the parameters tell
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return same(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same_value(one[key], other[key], depth - 1) for key in one)
    if isinstance(one, (list, tuple, deque)):
        return len(one) == len(other) and all(_same_value(a, b, depth - 1) for a, b in zip(one, other, strict=True))
    if isinstance(one, (bool, int, float, complex, str, bytes, set, frozenset)):
        return bool(one == other)
    if type(one).__module__ == "numpy" and hasattr(one, "shape"):
        return one.shape == other.shape and bool((one == other).all())
    return not hasattr(one, "__dict__") or _same_value(vars(one), vars(other), depth - 1)
