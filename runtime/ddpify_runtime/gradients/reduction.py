"""The gradients of one module, averaged over ranks by torch's DistributedDataParallel after any kind of backward.

Weighed against it: buckets of our own, sent by hooks on the parameters (`register_post_accumulate_grad_hook`,
`all_reduce(async_op=True)`, copied by `_foreach_copy_`), which needs no private name of the reducer. CPU of a rank per
step over gloo, in ms, of torch's reducer driven from here / of such buckets / of hand-written DDP. Means of 2 or 3
runs on a busy machine; they differ by 10 %, those of the MLP on 8 ranks by 40 %. (An MLP of three layers, 64 samples; a
ResNet-18 with GroupNorm, 16 images of 32 x 32.)

    MLP        2 ranks  1.21 / 1.01 / 0.51    8 ranks   1.86 / 1.81 / 1.08
    ResNet-18  2 ranks  71.0 / 69.5 / 59.5    8 ranks   53.5 / 52.7 / 57.8

So such buckets cost no more, and the sums of the parameters agree to 1e-9. They are not taken yet: sparse gradients and
XLA, whose tensors share no memory with a bucket, are to be shown first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import engines
from ..torch_internals import (
    after_backward,
    arm,
    disarm,
    forget_empty_hooks,
    graph_task,
    reduced_parameters,
    report_without_gradient,
)


class _Forward(nn.Module):
    """What DistributedDataParallel wraps: calls the user's module past its routed call.

    `got` is reduced along with the parameters; its gradient tells which of them got one on any rank.
    """

    def __init__(self, module: nn.Module, call: Callable[..., Any], trainable: list[nn.Parameter]) -> None:
        super().__init__()
        self.module = module
        self.call = call
        self.got = nn.Parameter(trainable[0].detach().new_zeros(len(trainable) + 1))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def align(parameters: Sequence[nn.Parameter]) -> None:
    """Give every rank the parameters of rank 0, to the last bit; a collective.

    DistributedDataParallel does so too, in a way that autograd takes for a change: where two modules share a part, the
    forward of the first one could no longer be differentiated.
    """
    tensors = [parameter.data for parameter in parameters if not engines.of(parameter.device).records]
    sent = [tensor.contiguous() for tensor in tensors]
    for work in [dist.broadcast(tensor, 0, async_op=True) for tensor in sent]:
        if work is not None:
            work.wait()
    for tensor, given in zip(tensors, sent, strict=True):
        if tensor is not given:
            tensor.copy_(given)


class NoReduction:
    """For a forward without gradients: nothing is reduced."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.forward = call

    def enter(self) -> None: ...

    def release(self) -> None: ...


class PartOfReduction(NoReduction):
    """For a part of a module: all of the module's gradients are reduced together, those outside of the part too.

    These are equal on every rank up to rounding, and stay so to the last bit.
    """

    def __init__(self, call: Callable[..., Any], enter: Callable[[], None]) -> None:
        super().__init__(call)
        self.enter = enter  # type: ignore[method-assign]


class Reduction:
    """One DistributedDataParallel, used by every forward with the same set of trainable parameters.

    Its reducer waits for every parameter in every backward. Which parameters get a gradient may depend on the pass (M4,
    L14) and even on the rank (experts, heads for some rows only), so at the end of a pass the others are reported to
    it as having none; where no rank had one, the gradient stays as it was.
    """

    def __init__(self, module: nn.Module, call: Callable[..., Any], options: dict[str, Any]) -> None:
        self.call = call
        self.ddp: nn.parallel.DistributedDataParallel | None = None
        self.task = -1
        trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not trainable:
            return
        align(trainable)
        self.forward_module = _Forward(module, call, trainable)
        self.ddp = nn.parallel.DistributedDataParallel(self.forward_module, init_sync=False, **options)
        self.ddp.broadcast_buffers = False  # before each forward; its argument has another name from torch 2.10 on
        self.parameters = reduced_parameters(self.ddp)
        self.places = {id(parameter): place for place, parameter in enumerate(self.parameters)}
        self.told: set[int] = set()  # of which the reducer knows that they are ready
        self.got: set[int] = set()  # which have a gradient from this pass
        self.hooks = [parameter.register_post_accumulate_grad_hook(self._note) for parameter in trainable]

    def release(self) -> None:
        """Hold no parameter any more; this can be used no more."""
        if self.ddp is not None:
            for hook in self.hooks:
                hook.remove()
            for parameter in self.parameters:
                forget_empty_hooks(parameter)
            self.ddp = None
            del self.forward_module, self.parameters

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's samples."""
        if self.ddp is None:
            return self.call(*args, **kwargs)
        with self.ddp.no_sync():  # the reducer is armed by `enter`
            return self.ddp(*args, **kwargs)

    def enter(self) -> None:
        """A backward pass enters the shared region: reduce what it accumulates."""
        task = graph_task()
        if self.ddp is None or task == self.task:
            return
        if self.task != -1:  # the pass before ended with an exception that the script caught
            disarm(self.ddp)
        self.task = task
        self.told.clear()
        self.got.clear()
        self.before = [parameter.grad is None for parameter in self.parameters]
        self.forward_module.got.grad = torch.ones_like(self.forward_module.got)
        arm(self.ddp)
        after_backward(self._complete)

    def _note(self, parameter: Tensor) -> None:
        self.told.add(self.places[id(parameter)])
        if parameter.requires_grad:  # it may have been frozen after the forward
            self.got.add(self.places[id(parameter)])

    def _complete(self) -> None:
        """All gradients of the pass are there: report the parameters that got none."""
        assert self.ddp is not None
        got = self.forward_module.got
        last = self.places[id(got)]
        others = [place for place in range(len(self.parameters)) if place != last]
        self.lacking = [place for place in others if place not in self.got]
        if self.lacking:
            assert got.grad is not None
            here = [float(place not in self.lacking) for place in range(len(self.parameters))]
            got.grad.copy_(torch.tensor(here))
        for place in [*(place for place in others if place not in self.told), last]:
            report_without_gradient(self.ddp, place)
        # The reducer has queued its own end by now; this comes after it.
        after_backward(self._leave)

    def _leave(self) -> None:
        self.task = -1
        got = self.forward_module.got.grad
        if not self.lacking or got is None:
            return
        anywhere = got.tolist()
        for place in self.lacking:
            if not anywhere[place] and self.before[place]:
                self.parameters[place].grad = None
