"""A batch, or an output of a divided forward, of which every rank still holds its samples only.

It is joined when something needs the whole of it, and not before: a loss, or the forward of a divided module, takes
this rank's samples; what keeps samples apart (moving, reshaping behind the batch, arithmetic, comparisons, softmax and
the largest over classes) is done to them; a loss or a count over all samples is a Partial; everything else gets the
whole tensor, as if it had been there from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial as partial_of
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from ..forward import losses, region
from ..sharding.collectives import Join, Rows, count, join, joined, leave, split
from ..torch_internals import apply, made_wrapper, tree_map_only
from .batch import QUESTIONS, Share, has_share, in_form, same_memory, wholes
from .labels import Labels
from .partial import partial
from .row_operations import BINARY, COPIES, FORMS, KINDS, OVER_A_DIM, REDUCE_DIMS, SHAPES, SORTED, UNARY

_FIRST = Rows(0)


class Output(Share):
    """Samples of a whole with `total` of them, which lie along `place`."""

    _rows: Tensor
    _joined: Tensor | None = None
    _source: tuple[Output, Callable[[Tensor], Tensor]] | None = None  # what it is a view of, and how
    _place: Rows
    _total: int
    _sizes: list[int]
    _entered: tuple[Callable[[], None], ...]
    _node: Any = None  # the autograd node that made this
    _used = False  # whether its samples were, in place of the whole
    _labels: tuple[Labels, str] | None = None  # the loaded numbers that these are, and which of them

    @staticmethod
    def __new__(cls, local: Tensor, total: int, place: Rows, entered: tuple[Callable[[], None], ...]) -> Output:
        size = list(local.shape)
        size[place.dim] = size[place.dim] // count(total) * total
        output: Output = made_wrapper(cls, size, local)
        output._rows, output._place, output._total, output._entered = local, place, total, entered
        output._sizes = size
        return output

    @property
    def local(self) -> Tensor | None:
        """This rank's samples; None once the whole has been used, since it may have been changed."""
        source = self._source
        if self._joined is not None or (source and source[0].local is None):
            return None
        with torch.DisableTorchFunctionSubclass():
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
        with torch.DisableTorchFunctionSubclass():
            return self.requires_grad and self.is_leaf

    def enter(self) -> None:
        """A backward pass enters the shared regions that this comes from."""
        _call(self._entered)

    def whole(self) -> Tensor:
        """The whole tensor; a collective the first time. It is a view where the same of a whole tensor would be."""
        if self._joined is None:
            with torch.enable_grad():  # a metric may ask first, without gradients
                if self._is_foreign:
                    self._joined = _Whole.apply(self)  # type: ignore[no-untyped-call]
                elif self._source is not None:
                    source, make = self._source
                    self._joined = make(source.whole())
                else:
                    self._joined = joined(self._held(), self._total, self._place, self.enter)
                if self._is_leaf:
                    self._joined = self._joined.detach().requires_grad_()
        return self._joined

    def _held(self) -> Tensor:
        if region.alone():
            raise RuntimeError("ddpify: rank 0 alone needs the whole of a tensor of which every process holds a part")
        return self._rows

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        with torch.DisableTorchFunctionSubclass():
            if func in losses.KNOWN:  # looked for first, as what each step calls
                result = _apart(func, args, kwargs)
                if result is not None:
                    return result
            elif func in QUESTIONS:
                return func(*args, **kwargs)
            func, args = in_form(func, args)
            if not has_share(args, kwargs):
                return func(*args, **kwargs)
            if func is Tensor.requires_grad.__get__:  # type: ignore[attr-defined]
                return func(args[0] if args[0].local is not None else args[0].whole())
            if func is torch.autograd.grad:
                return _differentiated(*args, **kwargs)
            if func in (Tensor.retain_grad, Tensor.register_hook) and args[0]._used:
                raise RuntimeError(
                    f"ddpify: call {func.__name__} on a large output before anything is computed from it"
                )
            result = _apart(func, args, kwargs)
            return func(*wholes(args), **wholes(kwargs)) if result is None else result

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """For callers that go past __torch_function__, as torch.autograd.Variable(x) does; without a graph."""
        if func is torch.ops.aten.detach.default and args[0].local is not None:
            return _view(args[0], Tensor.detach, args, {}, args[0]._rows.detach())
        return func(*tree_map_only(Output, _data, args), **tree_map_only(Output, _data, kwargs or {}))


def _data(output: Output) -> Tensor:
    return join(output._held().detach(), output._total, output._place)


def output(local: Tensor, total: int, rows: Rows, entered: Callable[[], None]) -> Tensor:
    """The whole of an output, joined when it is needed, if at all. Arguments as for `split`."""
    return _later(local, total, rows, (entered,))


def loaded(rows: Tensor, total: int, labels: Labels) -> Tensor:
    """A tensor of a batch with `total` samples, of which rows `[rank::world_size]` were loaded."""
    made = Output(rows, total, _FIRST, ())
    made._labels = labels, ""
    return made


def _later(local: Tensor, total: int, place: Rows, entered: tuple[Callable[[], None], ...]) -> Output:
    if not (local.requires_grad and torch.is_grad_enabled()):
        return Output(local.detach(), total, place, entered)
    made: Output = apply(_Later, local, total, place, entered)
    made._rows, made._node = local, _node(made)
    return made


def _node(output: Output) -> Any:
    with torch.DisableTorchFunctionSubclass():
        return output.grad_fn


def _differentiated(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    """torch.autograd.grad with respect to Outputs: where their samples were used, these lead to them."""
    listed = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    used = [isinstance(each, Output) and each._used for each in listed]
    if any(
        each._source is not None and each._joined is not None
        for each, is_used in zip(listed, used, strict=True)
        if is_used
    ):
        raise RuntimeError("ddpify: differentiate with respect to the large output itself rather than to a view of it")
    asked = [each._rows if is_used else wholes(each) for each, is_used in zip(listed, used, strict=True)]
    found = torch.autograd.grad(wholes(outputs), asked, *wholes(args), **wholes(kwargs))
    return tuple(
        joined(gradient, each._total, each._place, each.enter) / dist.get_world_size()
        if is_used and gradient is not None
        else gradient
        for gradient, each, is_used in zip(found, listed, used, strict=True)
    )


class _Later(Function):
    """For callers that go past __torch_function__, such as a Function of the user's own: the Output has a gradient."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, total: int, place: Rows, entered: tuple[Callable[[], None], ...]) -> Tensor:
        ctx.arguments = total, place, partial_of(_call, entered)
        return Output(local, total, place, entered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        result: tuple[Tensor, None, None, None] = Join.backward(ctx, *gradients)
        return result


class _Whole(Function):
    """The whole of an Output, in its own place of the graph."""

    @staticmethod
    def forward(ctx: Any, output: Output) -> Tensor:
        return _data(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def _apart(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result computed from this rank's samples, or None where that is not known to be the same."""
    if args and type(args[0]) is Output:
        first: Output | None = args[0]
    else:
        first = next((value for value in (*args, *kwargs.values()) if isinstance(value, Output)), None)
    local = first.local if first is not None else None
    if first is None or local is None:
        return None
    # (F.ctc_loss takes time first, and samples after it.)
    if func in losses.KNOWN and first._place == _FIRST and func is not F.ctc_loss:
        given = losses.reduction(func, args, kwargs)
        if given is not None:
            return _loss(first, local, func, given)
    if not args:
        return None
    alone = args[0] is first and not any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values()))
    if func in COPIES or (func is Tensor.type and len(args) + len(kwargs) > 1):  # else it asks for the name
        return _view(first, func, args, kwargs, func(local, *args[1:], **kwargs)) if alone else None
    if func in FORMS and alone and not kwargs.get("requires_grad"):
        return Output(func(local, *args[1:], **kwargs), first._total, first._place, ())
    if func in KINDS and alone:
        return func(local, *args[1:], **kwargs)
    if first._place.dim or not first._place.major:
        return None
    if func in REDUCE_DIMS or func in OVER_A_DIM or func in SORTED:
        return _behind_the_batch(first, func, args, kwargs)
    others = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value is not first]
    if func in BINARY:
        return _binary(first, func, args, kwargs)
    if others or args[0] is not first:
        return None
    if func in UNARY:
        return _made(first, func(local, *args[1:], **kwargs), (first,))
    if func in SHAPES:
        return _reshaped(first, func, args, kwargs)
    if (func is Tensor.transpose or func is torch.transpose) and not kwargs and 0 not in _dims(args[1:], first.dim()):
        return _view(first, func, args, kwargs, func(local, *args[1:]))
    if func is Tensor.__getitem__ and _takes_all_samples(args[1], first.dim()):
        return _view(first, func, args, kwargs, func(local, args[1]))
    return None


def _made(like: Output, local: Tensor, sources: Sequence[Output]) -> Output:
    for source in sources:
        source._used = True
    return _later(local, like._total, like._place, _entered(sources))


def _call(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _entered(sources: Sequence[Output]) -> tuple[Callable[[], None], ...]:
    of = [source._entered for source in sources if source._entered]
    if len(of) < 2 or of.count(of[0]) == len(of):
        return of[0] if of else ()
    return tuple(dict.fromkeys(entered for source in sources for entered in source._entered))


def _view(
    source: Output, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], local: Tensor
) -> Output:
    made = _made(source, local, (source,))
    if same_memory(local, source._rows):  # a copy does not follow when the source is changed in place later
        made._source = source, lambda whole: func(whole, *args[1:], **kwargs)
    if source._labels is not None:
        labels, which = source._labels
        made._labels = labels, which + repr(args[1]) if func is Tensor.__getitem__ else which
    return made


def _reshaped(source: Output, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Output | None:
    if any(isinstance(value, torch.dtype) for value in args):
        return None
    shape = func(torch.empty(source.shape, device="meta"), *args[1:], **kwargs).shape
    if not shape or shape[0] % source._total or not shape[0]:
        return None
    local = source._rows.reshape(shape[0] // source._total * count(source._total), *shape[1:])
    return _view(source, func, args, kwargs, local)


def _binary(first: Output, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Output | None:
    if kwargs or len(args) != 2:
        return None
    parts = [_part(value, first) for value in args]
    if any(part is None for part in parts):
        return None
    return _made(first, func(*parts), [value for value in args if isinstance(value, Output)])


def _part(value: Any, like: Output) -> Any:
    """This rank's part of an operand: a number is its own; None if it has none."""
    if type(value) is Output and _is_placed_as(value, like):
        local = value.local
        if local is not None:
            return local
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, Tensor) or value.device != like.device:
        return None
    if value.dim() < like.dim() or (value.dim() == like.dim() and value.size(0) == 1):  # the same for every sample
        return None if isinstance(value, Share) or value.requires_grad else value
    if value.dim() > like.dim() or value.size(0) != like.size(0):
        return None
    return _samples(value, like)


def _is_placed_as(one: Output, other: Output) -> bool:
    """Whether two are of the same size, with the samples at the same place."""
    mine = one._sizes, one._total, one._place, one._rows.device
    return mine == (other._sizes, other._total, other._place, other._rows.device)


def _samples(value: Tensor, like: Output) -> Tensor:
    """This rank's samples of a tensor with as many rows as `like`."""
    local = value.local if isinstance(value, Output) else None
    if isinstance(value, Output) and local is not None and (value._place, value._total) == (like._place, like._total):
        return local
    return split(value.whole() if isinstance(value, Share) else value, like._total, like._place, like.enter)


def _loss(first: Output, rows: Tensor, func: Callable[..., Any], given: dict[str, Any]) -> Tensor | None:
    """A loss over the whole batch from the samples of every rank; given: its arguments by name. rows: of the first."""
    classes = func in losses.CLASSES
    local: dict[str, Any] = {}
    sources: list[Output] = []
    for name, value in given.items():
        if isinstance(value, Output):
            sources.append(value)
        if value is first:
            local[name] = rows
        elif not isinstance(value, Tensor):
            local[name] = value
        elif classes and name == "weight":
            if value.requires_grad:
                return None
            local[name] = value
        elif classes and name == "target" and value.dim() and value.size(0) == first.size(0) and first.dim() > 1:
            local[name] = _samples(value, first)
        else:
            local[name] = _part(value, first) if list(value.shape) == first._sizes else None
            if local[name] is None:
                return None
    for source in sources:
        source._used = True
    part, divisor, dtype = losses.summands(func, local, classes and _all_count(given, local["target"]))
    whole: Tensor | int
    if isinstance(divisor, Tensor):
        whole = _over_ranks(given, local["target"], divisor)
    else:
        whole = 1 if divisor is None else divisor // count(first._total) * first._total
    if isinstance(whole, Tensor) or part.dtype != dtype:  # a sum may be too large for the dtype of the mean
        part, whole = (part / whole).to(dtype), 1
    return partial(part, None, _entered(sources), whole, losses.operation(func, local) if part.requires_grad else "")


def _all_count(given: dict[str, Any], mine: Tensor) -> bool:
    """Whether every target is known to count in a classification loss; arguments as for `_over_ranks`."""
    target, ignored = given["target"], given["ignore_index"]
    if not isinstance(target, Output) or target._labels is None or given["weight"] is not None:
        return False
    labels, which = target._labels
    return labels.all_count(mine, ignored, (ignored, mine.dtype, which))


def _over_ranks(given: dict[str, Any], mine: Tensor, divisor: Tensor) -> Tensor | int:
    """What the mean of a classification loss is divided by; no collective where every rank knows enough of all targets.

    Args: the loss's arguments, this rank's targets, and what their mean would be divided by.
    """
    target = given["target"]
    if not isinstance(target, Share):
        return torch.as_tensor(losses.weight_of_targets(given))
    if isinstance(target, Output) and target._labels is not None and given["weight"] is None:
        labels, which = target._labels
        return labels.count(divisor, mine.numel(), target.numel(), (given["ignore_index"], mine.dtype, which))
    total = divisor.clone()
    dist.all_reduce(total)
    return total


def _behind_the_batch(first: Output, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum, softmax or the like over other dimensions than that of the samples."""
    place = 2 if func in (Tensor.topk, torch.topk) else 1
    dims = args[place] if len(args) > place else kwargs.get("dim", -1 if func in SORTED else None)
    if args[0] is not first or dims is None or isinstance(dims, Tensor) or isinstance(kwargs.get("out"), Tensor):
        return None
    if 0 in _dims(dims if isinstance(dims, (tuple, list)) else (dims,), first.dim()):
        return None
    result = func(first.local, *args[1:], **kwargs)
    if isinstance(result, Tensor):
        return _made(first, result, (first,))
    return type(result)([_made(first, each, (first,)) for each in result])  # values and indices


def _dims(dims: Sequence[int], count: int) -> list[int]:
    return [dim % count for dim in dims]


def _takes_all_samples(index: Any, dims: int) -> bool:
    """Whether an index leaves the first dimension whole: `[:, -1]`, `[..., :-1, :]`."""
    if not isinstance(index, tuple) or not all(isinstance(each, (int, slice, type(...))) for each in index):
        return False
    if index[0] is ...:
        return len(index) - 1 < dims and ... not in index[1:]
    return bool(index[0] == slice(None))
