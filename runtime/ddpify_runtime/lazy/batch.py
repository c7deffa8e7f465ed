"""A tensor of a global batch of which this rank holds its rows only.

It has the shape of the whole. The training forward takes the rows; moving and casting keep them; whatever else is done
to it first joins the rows of all ranks, once. So inputs are loaded and moved once over all ranks, labels are joined
when the loss needs them, and no script can tell it from the whole tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from ..forward import region
from ..sharding.collectives import Rows, join
from .entries import Entries

_ROWS = Rows(0)

# What is the same for the rows and for the whole: these are done to the rows.
_KEEPS = {
    Tensor.to,
    Tensor.cuda,
    Tensor.cpu,
    Tensor.float,
    Tensor.double,
    Tensor.half,
    Tensor.bfloat16,
    Tensor.long,
    Tensor.int,
    Tensor.contiguous,
    Tensor.pin_memory,
    Tensor.detach,
    Tensor.data.__get__,  # type: ignore[attr-defined]
}
_SHAPES = {Tensor.view, Tensor.reshape, Tensor.flatten, Tensor.unsqueeze, torch.flatten, torch.unsqueeze, torch.reshape}
QUESTIONS = {
    Tensor.size,
    Tensor.dim,
    Tensor.numel,
    Tensor.__len__,
    Tensor.is_floating_point,
    Tensor.shape.__get__,  # type: ignore[attr-defined]
    Tensor.dtype.__get__,  # type: ignore[attr-defined]
    Tensor.device.__get__,
    Tensor.ndim.__get__,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
}


class Share(Tensor):
    """Rows `[rank::world_size]` of a whole with `total` rows."""

    _rows: Tensor
    _joined: Tensor | None
    _source: tuple[Share, Callable[[Tensor], Tensor]] | None  # what it was made of, and how

    @staticmethod
    def __new__(cls, rows: Tensor, total: int, source: tuple[Share, Callable[[Tensor], Tensor]] | None = None) -> Share:
        size = (total, *rows.shape[1:])
        share: Share = Tensor._make_wrapper_subclass(cls, size, dtype=rows.dtype, device=rows.device)
        share._rows, share._joined, share._source = rows, None, source
        return share

    @property
    def rows(self) -> Tensor | None:
        """This rank's rows; None once the whole has been used, since it may have been changed."""
        if self._joined is not None or (self._source and self._source[0].rows is None):
            return None
        return self._rows

    def whole(self) -> Tensor:
        """The whole tensor; a collective the first time. It is a view where the same of a whole tensor would be."""
        if self._joined is None:
            if self._source is not None:
                source, make = self._source
                self._joined = make(source.whole())
            elif region.alone():
                raise RuntimeError("ddpify: rank 0 alone needs the whole batch, of which every process holds a part")
            else:
                self._joined = join(self._rows, len(self), _ROWS)
        return self._joined

    def _made(self, rows: Tensor, make: Callable[[Tensor], Tensor]) -> Share:
        """What is made of this; a copy does not follow when this is changed in place later."""
        return Share(rows, len(self), (self, make) if same_memory(rows, self._rows) else None)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        func, args = in_form(func, args)
        share = args[0] if args else None
        if isinstance(share, Share) and share.rows is not None:

            def make(whole: Tensor) -> Tensor:
                return func(whole, *args[1:], **kwargs)  # type: ignore[no-any-return]

            if func in QUESTIONS:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            if not any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values())):
                if func in _KEEPS or (func is Tensor.type and len(args) + len(kwargs) > 1):  # else it asks for the name
                    return share._made(make(share._rows), make)
                if func in _SHAPES and not any(isinstance(value, torch.dtype) for value in args):
                    shape = func(torch.empty(share.shape, device="meta"), *args[1:], **kwargs).shape
                    if shape and shape[0] == len(share):
                        return share._made(share._rows.reshape(len(share._rows), *shape[1:]), make)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*wholes(args), **wholes(kwargs))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """For callers that go past __torch_function__, such as torch.autograd.Variable(x)."""
        if func is torch.ops.aten.detach.default and args[0].rows is not None:
            return Share(args[0]._rows.detach(), len(args[0]), (args[0], Tensor.detach))
        return func(*wholes(args), **wholes(kwargs or {}))


def in_form(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same call without a tensor of which it takes the form only, as in `x.view_as(y)`."""
    if len(args) == 2 and isinstance(args[1], Share):
        if func is Tensor.view_as or func is Tensor.reshape_as:
            return Tensor.reshape if func is Tensor.reshape_as else Tensor.view, (args[0], args[1].shape)
        if func is Tensor.type_as:
            return Tensor.to, (args[0], args[1].device, args[1].dtype)
    return func, args


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether one of two tensors is a view of the other, or of the same memory."""
    if one.device != other.device:
        return False
    if one.device.type == "xla":  # whose tensors have no addresses
        bases = [each if each._base is None else each._base for each in (one, other)]
        return bases[0] is bases[1]
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def wholes(values: Any) -> Any:
    """The same values, with the whole in place of every Share and Entries in them; the same object if there is none."""
    if not any(isinstance(leaf, (Share, Entries)) for leaf in tree_leaves(values)):
        return values
    return tree_map_only((Share, Entries), lambda part: part.whole(), values)


def join_what_it_sees(function: Callable[..., Any]) -> None:
    """Join every Share that a function finds without being given it: before one rank calls it alone. A collective.

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
    wholes(seen)
