"""A batch, or an output of a divided forward, of which every rank still holds its samples only.

It is joined when something needs the whole of it, and not before: a loss, or the forward of a divided module, takes
this rank's samples; what keeps samples apart (moving, reshaping behind the batch, arithmetic, comparisons, softmax and
the largest over classes) is done to them; a loss or a count over all samples is a Partial; everything else gets the
whole tensor, as if it had been there from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..forward import losses
from ..sharding.collectives import Rows, gather_with_grad
from ..torch_internals import made_wrapper
from .batch import QUESTIONS, as_it_is, has_distributed, in_form, wholes
from .held_rows import HeldRows, later
from .labels import Labels
from .row_wise import row_wise

_FIRST = Rows(0)
_REQUIRES_GRAD = Tensor.requires_grad.__get__  # type: ignore[attr-defined]
_BEFORE_USE = {Tensor.retain_grad, Tensor.register_hook}


class Output(HeldRows):
    """Samples of a batch, or of an output of a divided forward."""

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
                result = row_wise(func, args, kwargs)
                if result is not None:
                    return result
            elif func in QUESTIONS:
                return func(*as_it_is(args), **kwargs)
            func, args = in_form(func, args)
            if not (args and isinstance(args[0], cls)) and not has_distributed(args, kwargs):
                return func(*args, **kwargs)
            if func is _REQUIRES_GRAD:
                return func(args[0] if args[0].local is not None else args[0].whole())
            if func is torch.autograd.grad:
                return _differentiated(*args, **kwargs)
            if func in _BEFORE_USE and args[0]._used:
                raise RuntimeError(
                    f"ddpify: call {func.__name__} on a large output before anything is computed from it"
                )
            result = row_wise(func, args, kwargs)
            return func(*wholes(args), **wholes(kwargs)) if result is None else result


def _differentiated(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    """torch.autograd.grad with respect to Outputs: where their samples were used, these lead to them."""
    listed = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    used = [isinstance(each, Output) and each._used and each._rows.requires_grad for each in listed]
    if any(
        each._source is not None and each._whole is not None
        for each, is_used in zip(listed, used, strict=True)
        if is_used
    ):
        raise RuntimeError("ddpify: differentiate with respect to the large output itself rather than to a view of it")
    asked = [each._rows if is_used else wholes(each) for each, is_used in zip(listed, used, strict=True)]
    found = torch.autograd.grad(wholes(outputs), asked, *wholes(args), **wholes(kwargs))
    return tuple(
        gather_with_grad(gradient, each._total, each._place, each.enter) / dist.get_world_size()
        if is_used and gradient is not None
        else gradient
        for gradient, each, is_used in zip(found, listed, used, strict=True)
    )


def output(local: Tensor, total: int, rows: Rows, on_enter: Callable[[], None]) -> Tensor:
    """The whole of an output, joined when it is needed, if at all. Arguments as for `split`."""
    return later(Output, local, total, rows, (on_enter,))


def loaded(rows: Tensor, total: int, labels: Labels) -> Tensor:
    """A tensor of a batch with `total` samples, of which rows `[rank::world_size]` were loaded."""
    size = [total, *rows.shape[1:]]
    made: Output = made_wrapper(Output, size, rows)
    made._rows, made._place, made._total, made._on_enter, made._sizes = rows, _FIRST, total, (), size
    made._labels = labels, ""
    return made
