"""Rows of a whole of which every rank holds its own, as a tensor; no script can tell it from the whole.

It is joined when something needs the whole of it, and not before. Views follow when their source is changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..forward import region
from ..sharding.collectives import Gather, Rows, count, gather, gather_with_grad, leave, split, world_size
from ..torch_internals import apply, asks_subclasses, base_of, made_wrapper, tree_map_only
from ..trial.equal_ranks import require_equal_labels
from .batch import DistributedTensor, entering, same_memory
from .labels import Labels
from .row_operations import VIEWS_OR_COPIES

_FIRST = Rows(0)
_told_of_joins: Callable[[bool], None] | None = None


def tell_of_joins(told: Callable[[bool], None]) -> None:
    """Call a function before rows are joined from now on, with whether gradients are enabled there."""
    global _told_of_joins
    _told_of_joins = told


class HeldRows(DistributedTensor):
    """Samples of a whole with `total` of them, which lie along `place`.

    Its own attributes have underscores, since a script may give a tensor attributes of any name.
    """

    _rows: Tensor
    _whole: Tensor | None = None
    _viewed: Tensor | None = None  # the same memory in the form that its views know: `x.t_()` changes that of x alone
    _source: tuple[HeldRows, Callable[[Any], Tensor]] | None = None  # what it is a view of, and how
    _place: Rows
    _total: int
    _sizes: list[int]
    _on_enter: tuple[Callable[[], None], ...]
    _node: Any = None  # the autograd node that made this
    _used = False  # whether its samples were, in place of the whole
    _labels: tuple[Labels, str] | None = None  # the loaded numbers that these are, and which of them

    @staticmethod
    def __new__(cls, local: Tensor, total: int, place: Rows, on_enter: tuple[Callable[[], None], ...]) -> HeldRows:
        size = [*local.shape]
        size[place.dim] = size[place.dim] // count(total) * total
        output: HeldRows = made_wrapper(cls, size, local)
        output._rows, output._place, output._total, output._on_enter = local, place, total, on_enter
        output._sizes = size
        return output

    @property
    def local(self) -> Tensor | None:
        """This rank's samples; None once the whole has been used, since it may have been changed."""
        if asks_subclasses():
            with torch.DisableTorchFunctionSubclass():
                return self._local()
        return self._local()

    def _local(self) -> Tensor | None:
        source = self._source
        if self._whole is not None or (source is not None and source[0]._local() is None):
            return None
        node = self.grad_fn
        if node is not self._node or (node is None and self.requires_grad):  # it is foreign, or a leaf
            return None
        return self._rows

    @property
    def rows(self) -> Tensor | None:
        """What a divided forward takes in place of rows `[rank::world_size]` of the whole; None if it is not those."""
        local = self.local
        if local is None or self._place != _FIRST or self._sizes[0] != self._total:
            return None
        self._used = True
        return leave(local, self.enter) if local.requires_grad else local.detach()

    @property
    def _is_foreign(self) -> bool:
        """Whether a Function of the user's own has returned this, so that it has another gradient than its samples."""
        return _node(self) is not self._node

    @property
    def _is_leaf(self) -> bool:
        """Whether gradients are asked for of the whole: `torch.autograd.Variable(x, requires_grad=True)` made this."""
        if not asks_subclasses():
            return self.requires_grad and self.is_leaf
        with torch.DisableTorchFunctionSubclass():
            return self.requires_grad and self.is_leaf

    @property
    def enter(self) -> Callable[[], None]:
        """Called when a backward pass enters the shared regions that this comes from."""
        return entering(self._on_enter)

    def whole(self) -> Tensor:
        """The whole tensor; a collective the first time. It is a view where the same of a whole tensor would be."""
        if self._whole is None:
            has_gradients = torch.is_grad_enabled()
            with torch.enable_grad():  # a metric may ask first, without gradients
                if self._is_foreign:
                    self._whole = _WholeOfRows.apply(self)  # type: ignore[no-untyped-call]
                elif self._source is not None:
                    source, make = self._source
                    source.whole()
                    self._whole = make(source._viewed)
                else:
                    held = self._held()
                    if _told_of_joins is not None:
                        _told_of_joins(has_gradients)
                    self._whole = gather_with_grad(held, self._total, self._place, self.enter)
                if self._is_leaf:
                    self._whole = self._whole.detach().requires_grad_()
                self._viewed = self._whole.view_as(self._whole)
        return self._whole

    def _held(self) -> Tensor:
        region.require_all_ranks("the whole of a tensor")
        return self._rows

    def _form(self) -> Tensor:
        """A tensor without values that has the sizes and strides of the whole."""
        if self._source is None:
            return torch.empty(self._sizes, device="meta")
        source, make = self._source
        return make(source._form())

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """For callers that go past __torch_function__, as torch.autograd.Variable(x) does; without a graph."""
        if func is torch.ops.aten.detach.default and args[0].local is not None:
            return view_of(args[0], Tensor.detach, args, {}, args[0]._rows.detach())
        return func(*tree_map_only(HeldRows, _data, args), **tree_map_only(HeldRows, _data, kwargs or {}))


def _data(output: HeldRows) -> Tensor:
    if output._whole is not None:
        return output._whole.detach()
    if output._source is not None and output._source[0].local is None:
        source, make = output._source
        return make(_data(source) if source._viewed is None else source._viewed.detach())
    return gather(output._held().detach(), output._total, output._place)


def later(
    kind: type[HeldRows], local: Tensor, total: int, place: Rows, on_enter: tuple[Callable[[], None], ...]
) -> HeldRows:
    if not (local.requires_grad and torch.is_grad_enabled()):
        return kind.__new__(kind, local.detach(), total, place, on_enter)
    made: HeldRows = apply(_Later, kind, local, total, place, on_enter)
    made._rows, made._node = local, _node(made)
    return made


def made_like(like: HeldRows, local: Tensor, sources: Sequence[HeldRows]) -> HeldRows:
    for source in sources:
        source._used = True
    return later(type(like), local, like._total, like._place, on_enter_of(sources))


def view_of(
    source: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], local: Tensor
) -> HeldRows:
    made = made_like(source, local, (source,))
    if is_view(source, func, args, kwargs, local):  # a copy does not follow when the source is changed in place later
        has_gradients = torch.is_grad_enabled()

        def make(whole: Tensor) -> Tensor:
            with torch.set_grad_enabled(has_gradients):
                return func(whole, *args[1:], **kwargs)  # type: ignore[no-any-return]

        made._source = source, make
    if source._labels is not None:
        labels, which = source._labels
        made._labels = labels, which + repr(args[1]) if func is Tensor.__getitem__ else which
    return made


def is_view(
    source: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], local: Tensor
) -> bool:
    """Whether the same of the whole has the memory of the source; `local` is what it makes of this rank's samples.

    A rank with a single sample cannot tell: any strides along it are contiguous.
    """
    if func in VIEWS_OR_COPIES and source._total < 2 * world_size():
        form = source._form()
        return base_of(func(form, *args[1:], **kwargs)) is base_of(form)
    return local is source._rows or same_memory(local, source._rows)


def on_enter_of(sources: Sequence[HeldRows]) -> tuple[Callable[[], None], ...]:
    of = [source._on_enter for source in sources if source._on_enter]
    if len(of) < 2 or of.count(of[0]) == len(of):
        return of[0] if of else ()
    return tuple(dict.fromkeys(on_enter for source in sources for on_enter in source._on_enter))


def size(tensor: Tensor, dim: int) -> int:
    """The size of a tensor, which may be a part that passes for the whole, without asking its class."""
    if type(tensor) is Tensor:
        return tensor.size(dim)
    if isinstance(tensor, HeldRows):
        return tensor._sizes[dim]
    with torch.DisableTorchFunctionSubclass():
        return tensor.size(dim)


def device_of(tensor: Tensor) -> torch.device:
    """Its device, as `size`."""
    if type(tensor) is Tensor:
        return tensor.device
    if isinstance(tensor, HeldRows):
        return tensor._rows.device
    with torch.DisableTorchFunctionSubclass():
        return tensor.device


def _node(output: HeldRows) -> Any:
    if not asks_subclasses():
        return output.grad_fn
    with torch.DisableTorchFunctionSubclass():
        return output.grad_fn


def part_of(value: Any, like: HeldRows) -> Any:
    """This rank's part of an operand: a number is its own; None if it has none."""
    if isinstance(value, HeldRows) and _is_placed_as(value, like):
        local = value.local
        if local is not None:
            return local
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, Tensor) or value.device != like.device:
        return None
    if value.dim() < like.dim() or (value.dim() == like.dim() and value.size(0) == 1):  # the same for every sample
        return None if isinstance(value, DistributedTensor) or value.requires_grad else value
    if value.dim() > like.dim() or value.size(0) != like.size(0):
        return None
    return samples_of(value, like)


def samples_of(value: Tensor, like: HeldRows) -> Tensor:
    """This rank's samples of a tensor with as many rows as `like`."""
    if isinstance(value, HeldRows) and value._total == like._total and value._place == like._place:
        local = value.local
        if local is not None:
            return local
    if isinstance(value, DistributedTensor):
        value = value.whole()
    else:
        require_equal_labels(value)
    return split(value, like._total, like._place, like.enter)


def _is_placed_as(one: HeldRows, other: HeldRows) -> bool:
    """Whether two are of the same size, with the samples at the same place."""
    mine = one._sizes, one._total, one._place, one._rows.device
    return mine == (other._sizes, other._total, other._place, other._rows.device)


class _Later(Function):
    """For callers that go past __torch_function__, such as a Function of the user's own: the rows have a gradient."""

    @staticmethod
    def forward(
        ctx: Any, kind: type[HeldRows], local: Tensor, total: int, place: Rows, on_enter: tuple[Callable[[], None], ...]
    ) -> Tensor:
        ctx.arguments = total, place, entering(on_enter)
        return kind.__new__(kind, local, total, place, on_enter)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None, None, None]:
        return None, *Gather.backward(ctx, *gradients)


class _WholeOfRows(Function):
    """The whole of HeldRows, in its own place of the graph."""

    @staticmethod
    def forward(ctx: Any, output: HeldRows) -> Tensor:
        return _data(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]
