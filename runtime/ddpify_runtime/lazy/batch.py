"""A tensor or number of which this rank holds a part only; no script can tell it from the whole.

Its kinds: samples of a batch or of an output (outputs.py), and a number that is a sum over ranks (partial.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from .. import engines
from ..torch_internals import base_of, tree_leaves, tree_map_only
from .entries import Entries

_DEPTH = 3
QUESTIONS = {
    Tensor.size,
    Tensor.dim,
    Tensor.numel,
    Tensor.__len__,
    Tensor.is_floating_point,
    Tensor.is_inference,
    Tensor.shape.__get__,  # type: ignore[attr-defined]
    Tensor.dtype.__get__,  # type: ignore[attr-defined]
    Tensor.device.__get__,
    Tensor.ndim.__get__,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
    Tensor.is_xpu.__get__,  # type: ignore[attr-defined]
}


class DistributedTensor(Tensor):
    """A part of a whole that all ranks hold together."""

    @property
    def rows(self) -> Tensor | None:
        """What a divided forward takes in place of rows `[rank::world_size]` of the whole; None if it has none."""
        return None

    _whole: Tensor | None

    def whole(self) -> Tensor:
        """The whole; a collective the first time."""
        raise NotImplementedError


def entering(functions: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """What enters the regions that a tensor comes from: no method of it, which a node of its own graph would keep."""
    return functions[0] if len(functions) == 1 else partial(_call, functions)


def _call(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def in_form(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same call without a tensor of which it takes the form only, as in `x.view_as(y)`."""
    if len(args) == 2 and isinstance(args[1], DistributedTensor):
        if func is Tensor.view_as or func is Tensor.reshape_as:
            return Tensor.reshape if func is Tensor.reshape_as else Tensor.view, (args[0], args[1].shape)
        if func is Tensor.type_as:
            return Tensor.to, (args[0], args[1].device, args[1].dtype)
    return func, args


def as_it_is(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a question for its form: one that was made whole may have another one since, `x.t_()`."""
    first = args[0]
    whole = first._whole if isinstance(first, DistributedTensor) else None
    return args if whole is None else (whole, *args[1:])


def has_distributed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether there is one among the arguments of a call, or in lists and the like of them."""
    if any(isinstance(each, DistributedTensor) for each in args):
        return True
    return any(isinstance(each, DistributedTensor) for each in tree_leaves((args, kwargs)))


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether one of two tensors is a view of the other, or of the same memory."""
    if one.device != other.device:
        return False
    if engines.of(one.device).records:  # its tensors have no addresses
        return base_of(one) is base_of(other)
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def wholes(values: Any) -> Any:
    """The same values, with every DistributedTensor and Entries in them whole; the same object if there is none."""
    if not any(isinstance(leaf, (DistributedTensor, Entries)) for leaf in tree_leaves(values)):
        return values
    return tree_map_only((DistributedTensor, Entries), lambda part: part.whole(), values)


def gather_what_it_sees(function: Callable[..., Any]) -> None:
    """Gather what a function finds of them without being given it: before one rank calls it alone. A collective.

    Those are in the attributes of its object, its closure and the globals that it names; in lists and the like too.
    """
    plain = getattr(function, "__func__", function)
    names = getattr(getattr(plain, "__code__", None), "co_names", ())
    visible = getattr(plain, "__globals__", {})
    seen: list[Any] = [visible[name] for name in names if name in visible]
    for cell in getattr(plain, "__closure__", None) or ():
        with suppress(ValueError):  # it is empty yet
            seen.append(cell.cell_contents)
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, ModuleType):  # that of a built-in function
        seen += getattr(owner, "__dict__", {}).values()
    wholes([*seen, *_kept_in_modules(seen)])


def gather_what_they_hold(values: Any) -> None:
    """Gather what objects hold that a function is given: `torch.save({"meter": meter}, path)`. A collective.

    A few objects deep, as what is saved is; a tensor holds none, and a network what its forward has kept.
    """
    seen: set[int] = set()
    waiting = [(each, 0) for each in tree_leaves(values)]
    wholes(_kept_in_modules([each for each, _ in waiting]))
    for value, depth in waiting:
        held = getattr(value, "__dict__", None)
        is_whole = isinstance(value, (Tensor, nn.Module, type, ModuleType))
        if not held or is_whole or depth >= _DEPTH or id(value) in seen:
            continue
        seen.add(id(value))
        parts = wholes([*held.values()])
        waiting += [(each, depth + 1) for each in tree_leaves(parts)]


def _kept_in_modules(values: Sequence[Any]) -> list[Any]:
    """What the parts of the networks among some values hold in attributes."""
    parts = [part for value in values if isinstance(value, nn.Module) for part in value.modules()]
    return [each for part in parts for each in vars(part).values() if isinstance(each, DistributedTensor)]
