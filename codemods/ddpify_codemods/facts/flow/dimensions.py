"""How many dimensions a tensor has, where that is seen: `softmax(x)` says no other way which one it runs along.

torch takes the first dimension of a tensor with one or three, and else the second one
(torch.nn.functional._get_softmax_dim).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .values import LOCAL_ROWS, Items, Value

# They choose a dimension by the number of dimensions.
IMPLICIT = frozenset({"softmax", "log_softmax", "softmin"})
_KEEP = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "detach", "clone", "contiguous", "exp", "log", "sigmoid", "tanh"}
    | {"relu", "leaky_relu", "elu", "selu", "gelu", "silu", "softplus", "dropout", "linear", "Variable", "data"}
    | {"softmax", "log_softmax", "softmin", "requires_grad_", "relu_", "clamp", "mul_", "div_"}
)
_MODULES_KEEP = frozenset(
    {"Linear", "Identity", "Dropout", "ReLU", "LeakyReLU", "PReLU", "ELU", "SELU", "GELU", "SiLU", "Softplus"}
    | {"Sigmoid", "Tanh", "LogSoftmax", "Softmax", "Softmin", "BatchNorm1d", "LayerNorm"}
)
_OF_IMAGES = frozenset(
    {"Conv2d", "ConvTranspose2d", "BatchNorm2d", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"}
)


def implicit(dimensions: int) -> int:
    """The dimension that softmax runs along in a tensor of so many dimensions."""
    return 0 if dimensions in (0, 1, 3) else 1


def of_dimensions(value: Value, dimensions: int | None) -> Value:
    """A tensor of so many dimensions."""
    return value if dimensions == value.dimensions else replace(value, dimensions=dimensions)


def of_sizes_given(given: Sequence[Value]) -> int | None:
    """How many dimensions a tensor has that is made of some sizes, or of a tuple of them; None if that is not seen."""
    tuples = [each for value in given[:1] for each in value.things if isinstance(each, Items)]
    sizes = tuples[0].all() if tuples else given
    known = all(each.kind in ("size", "same") and not each.things for each in sizes)
    return len(sizes) if known and all(each.shape == "tuple" and each.rest is None for each in tuples) else None


def after_operation(name: str, value: Value, dimension: object, given: Sequence[Value]) -> int | None:
    """How many dimensions the result of a method or function has; None where that is not seen.

    Args:
        name: the function's last name. value: the tensor. dimension: the one that is given. given: other arguments.
    """
    if name in _KEEP and not any(each.is_local for each in given):
        return value.dimensions
    if name in ("view", "reshape") and given and all(_is_number(each) for each in given):
        return len(given)
    if name == "flatten" and dimension == 1 and len(given) <= 1:
        return 2
    return None


def after_arithmetic(left: Value, right: Value) -> int | None:
    """How many dimensions the result of an arithmetic operation has: of a tensor and a number, or of two alike."""
    rows = [each for each in (left, right) if each.kind in LOCAL_ROWS]
    numbers = [each for each in (left, right) if each not in rows]
    known = {each.dimensions for each in rows}
    return known.pop() if len(known) == 1 and all(_is_number(each) for each in numbers) else None


def after_module(name: str, value: Value) -> int | None:
    """How many dimensions a module of torch.nn gives back; samples lie along the first of what it is given."""
    if name in _OF_IMAGES:
        return 4
    return value.dimensions if name in _MODULES_KEEP else None


def _is_number(value: Value) -> bool:
    """Whether it is a number of Python."""
    return value.host and not value.things and (value.kind == "size" or not value.is_local)
