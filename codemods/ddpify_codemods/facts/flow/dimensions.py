"""How many dimensions a tensor has, where that is seen: `softmax(x)` says no other way which one it runs along.

torch takes the first dimension of a tensor with one or three, and else the second one
(torch.nn.functional._get_softmax_dim).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .layout import axis
from .operation_names import ALONG, EACH, KEEP_SHAPE, MEET, WEIGHTED
from .values import LOCAL_ROWS, Items, Value, least

_DIMENSIONS = 99  # more than any tensor has

# They choose a dimension by the number of dimensions.
IMPLICIT = frozenset({"softmax", "log_softmax", "softmin"})
_KEEP = EACH - (
    {"view_as", "expand_as", "expand", "repeat_interleave", "where", "one_hot", "embedding", "view_as_real"}
    | {"pairwise_distance", "cosine_similarity", "add", "sub", "mul", "div", "minimum", "maximum"}
) | frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "detach", "clone", "contiguous", "exp", "log", "sigmoid", "tanh"}
    | {"relu", "leaky_relu", "elu", "selu", "gelu", "silu", "softplus", "dropout", "linear", "Variable", "data"}
    | {"softmax", "log_softmax", "softmin", "requires_grad_", "relu_", "clamp", "mul_", "div_"}
)
_MODULES_KEEP = frozenset(
    {"Linear", "Identity", "Dropout", "ReLU", "LeakyReLU", "PReLU", "ELU", "SELU", "GELU", "SiLU", "Softplus"}
    | {"Hardtanh", "Hardswish", "Mish", "ReLU6", "Hardsigmoid", "LogSigmoid", "Softsign", "Bilinear", "AlphaDropout"}
    | {"Sigmoid", "Tanh", "LogSoftmax", "Softmax", "Softmin", "BatchNorm1d", "LayerNorm"}
)
_ALONG_LATER = frozenset({"Linear", "Bilinear", "LayerNorm", "BatchNorm1d"})  # in one dimension they would mix samples
_OF_IMAGES = frozenset(
    {"Conv2d", "ConvTranspose2d", "BatchNorm2d", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"}
)
_ONE_NUMBER = frozenset({"mean", "sum", "std", "var", "norm", "max", "min", "prod", "median"})
_OF_ELEMENTS = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
    | {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss"}
)
_OF_SEQUENCES = frozenset(
    {"Conv1d", "ConvTranspose1d", "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d", "AdaptiveMaxPool1d"}
)
_TURNED = frozenset({"t", "T", "transpose", "permute", "swapaxes", "swapdims", "gather"})
_SEVERAL = frozenset({"max", "min", "median", "topk", "sort", "mode", "kthvalue", "var_mean", "std_mean", "aminmax"})


def implicit(dimensions: int) -> int:
    """The dimension that softmax runs along in a tensor of so many dimensions."""
    return 0 if dimensions in (0, 1, 3) else 1


def keeps_dimensions(name: str) -> bool:
    """Whether what a method or function makes of a tensor alone has the dimensions of that."""
    return name in _KEEP


def of_dimensions(value: Value, dimensions: int | None, at_least: int = 0) -> Value:
    """A tensor of so many dimensions; where that is not known, of so many at least."""
    at_least = at_least if dimensions is None else 0
    alike = dimensions == value.dimensions and at_least == value.at_least
    return value if alike else replace(value, dimensions=dimensions, at_least=at_least)


def of_sizes_given(given: Sequence[Value]) -> int | None:
    """How many dimensions a tensor has that is made of some sizes, or of a tuple of them; None if that is not seen."""
    tuples = [each for value in given[:1] for each in value.things if isinstance(each, Items)]
    sizes = tuples[0].all() if tuples else given
    known = all(each.kind in ("size", "same") and not each.things for each in sizes)
    return len(sizes) if known and all(each.shape == "tuple" and each.rest is None for each in tuples) else None


def after_operation(
    name: str, value: Value, dimension: object, given: Sequence[Value], keeps: bool = False
) -> int | None:
    """How many dimensions the result of a method or function has; None where that is not seen.

    Args:
        name: the function's last name. value: the tensor. dimension: the one that is given. given: other arguments.
        keeps: whether a dimension is kept that is summed, or the like.
    """
    others = [each for each in given if each.is_local]
    if name in _KEEP and not others:
        return value.dimensions
    if name in MEET and (len(others) == len(given) or all(_is_number(each) for each in given if each not in others)):
        return most([value, *others])
    if name in ("view", "reshape") and given and all(_is_number(each, len(given) > 1) for each in given):
        return len(given)
    if name == "flatten" and len(given) <= 1:  # from a dimension on, by whatever name
        start = dimension if isinstance(dimension, int) else given[0].constant if given else 0
        return start + 1 if isinstance(start, int) and start >= 0 else None
    if name == "ravel":
        return 1
    if name in _ONE_NUMBER and dimension is None and not given:
        return 0
    if name in ("pairwise_distance", "cosine_similarity") and len(others) == 1:
        both = most([value, *others])
        return None if both is None else both - (not keeps)
    return None if others or value.dimensions is None else _of_one(name, value.dimensions, dimension, len(given), keeps)


def _of_one(name: str, dimensions: int, dimension: object, given: int, keeps: bool) -> int | None:
    """The same of operations that give a tensor one dimension more or less."""
    if name in _TURNED:
        return dimensions
    if name == "one_hot":
        return dimensions + 1
    if name == "unsqueeze":
        return dimensions + 1
    if name == "squeeze":
        return dimensions - 1 if isinstance(dimension, int) else None
    along = dimension if isinstance(dimension, tuple) else (dimension,)
    if name not in ALONG or name in _SEVERAL or not all(isinstance(each, int) for each in along):
        return None
    if name in KEEP_SHAPE or keeps:
        return dimensions
    return dimensions - len(along) if given <= 1 else None


def parts_of(name: str, value: Value, dimension: object, keeps: bool) -> tuple[tuple[int | str | None, int], ...]:
    """How many dimensions the two tensors have that `x.max(1)` gives, by place and name; keeps: that one, too."""
    known = value.dimensions
    if name not in _SEVERAL or not known or not isinstance(dimension, int):
        return ()
    left = known if keeps or name in ("topk", "sort") else known - 1
    return tuple((key, left) for key in (0, 1, "values", "indices"))


def of_losses(name: str, given: Sequence[Value]) -> int | None:
    """How many dimensions losses have that are not reduced. name: of the loss. given: scores and targets."""
    if len(given) < 2 or not given[0].dimensions or not given[1].dimensions:
        return None
    if name in WEIGHTED:  # a target is a class, or has a probability for each
        return given[0].dimensions - 1
    return most(given[:2]) if name in _OF_ELEMENTS else None


def most(values: Sequence[Value]) -> int | None:
    """How many dimensions the tensor has that is made of several, element by element."""
    known = [each.dimensions for each in values]
    return None if None in known or not known else max(each for each in known if each is not None)


def meet_otherwise(values: Sequence[Value]) -> bool:
    """Whether the samples of one tensor meet another dimension than those of another: `(B,)` and `(B, 1)`. The last
    dimensions of tensors meet."""
    rows = [each for each in values if each.kind in LOCAL_ROWS and axis(each.kind) is not None]
    places = {_from_last(each) for each in rows}
    known = [each for each in places if each is not None]
    before = [(axis(each.kind) or 0) - each.at_least for each in rows if _from_last(each) is None]
    return len({*known}) > 1 or any(each < min(known, default=each) for each in before)


def _from_last(value: Value) -> int | None:
    """Where the samples lie, counted from the last dimension; None where that is not known."""
    at = axis(value.kind)
    return at if at is None or at < 0 else None if value.dimensions is None else at - value.dimensions


def after_arithmetic(left: Value, right: Value) -> int | None:
    """How many dimensions the result of an arithmetic operation has: of a tensor and a number, or of two alike."""
    rows = [each for each in (left, right) if each.kind in LOCAL_ROWS]
    numbers = [each for each in (left, right) if each not in rows]
    known = most(rows)
    fits = all(
        _is_number(each) or (_DIMENSIONS if each.dimensions is None else each.dimensions) <= (known or 0)
        for each in numbers
    )
    return known if fits else None


def at_least_after(values: Sequence[Value]) -> int:
    """How many dimensions at least, of what is made of several tensors element by element."""
    return max((least(each) for each in values if each.kind in LOCAL_ROWS), default=0)


def at_least_after_operation(name: str, value: Value, dimension: object, given: Sequence[Value]) -> int:
    """How many dimensions at least the result of a method or function has."""
    if name == "linear":
        return max(least(value), 2)  # with fewer it would run over the samples
    if name == "unsqueeze":
        return max(least(value), 1) + 1
    if name in MEET:
        return at_least_after([value, *given])
    along = name in KEEP_SHAPE and isinstance(dimension, int)
    return least(value) if name in _KEEP or along else 0


def at_least_after_module(name: str, value: Value) -> int:
    """How many dimensions at least a module of torch.nn gives back, whose samples lie along the first."""
    if name in _ALONG_LATER:
        return max(least(value), 2)
    return least(value) if name in _MODULES_KEEP else 0


def after_module(name: str, value: Value) -> int | None:
    """How many dimensions a module of torch.nn gives back; samples lie along the first of what it is given."""
    if name in _OF_IMAGES:
        return 4
    if name in _OF_SEQUENCES:
        return 3
    if name == "Embedding":
        return None if value.dimensions is None else value.dimensions + 1
    if name in ("CosineSimilarity", "PairwiseDistance"):
        return None if value.dimensions is None else value.dimensions - 1
    return value.dimensions if name in _MODULES_KEEP else None


def _is_number(value: Value, one_of_several: bool = False) -> bool:
    """Whether it is a number of Python; one_of_several: one of several sizes, none of which is a tuple."""
    return (value.host or one_of_several) and not value.things and (value.kind == "size" or not value.is_local)
