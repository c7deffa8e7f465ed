"""The gradients of one module, averaged over ranks by torch's DistributedDataParallel after any kind of backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable


class _Forward(nn.Module):
    """What DistributedDataParallel wraps: calls the user's module past its routed call.

    `missing` is reduced along with the parameters; its gradient tells whether any rank lacks a gradient.
    """

    def __init__(self, module: nn.Module, call: Callable[..., Any], like: Tensor) -> None:
        super().__init__()
        self.module = module
        self.call = call
        self.missing = nn.Parameter(like.new_zeros(1))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


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
        self.forward_module = _Forward(module, call, trainable[0].detach())
        self.ddp = nn.parallel.DistributedDataParallel(self.forward_module, forward_sync_buffers=False, **options)
        self.parameters: list[nn.Parameter] = self.ddp._build_params_for_reducer()[0]
        self.places = {id(parameter): place for place, parameter in enumerate(self.parameters)}
        self.got: set[int] = set()
        for parameter in trainable:
            parameter.register_post_accumulate_grad_hook(self._note)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's samples."""
        if self.ddp is None:
            return self.call(*args, **kwargs)
        with self.ddp.no_sync():  # the reducer is armed by `enter`
            return self.ddp(*args, **kwargs)

    def enter(self) -> None:
        """A backward pass enters the shared region: reduce what it accumulates."""
        task = torch._C._current_graph_task_id()
        if self.ddp is None or task == self.task:
            return
        if self.task != -1:  # the pass before ended with an exception that the script caught
            self.ddp.reducer._reset_state()
        self.task = task
        self.got.clear()
        self.before = [parameter.grad is None for parameter in self.parameters]
        self.forward_module.missing.grad = torch.zeros_like(self.forward_module.missing)
        self.ddp.reducer._rebuild_buckets()
        self.ddp.reducer.prepare_for_backward([])
        later = Variable._execution_engine.queue_callback
        later(self._complete)

    def _note(self, parameter: Tensor) -> None:
        self.got.add(self.places[id(parameter)])

    def _complete(self) -> None:
        """All gradients of the pass are there: report the parameters that got none."""
        assert self.ddp is not None
        missing = self.forward_module.missing
        assert missing.grad is not None
        last = self.places[id(missing)]
        lacking = [place for place in range(len(self.parameters)) if place not in self.got and place != last]
        if lacking:
            missing.grad.fill_(1.0)
        for place in [*lacking, last]:
            self.ddp.reducer._autograd_hook(place)  # type: ignore[attr-defined]
        # The reducer has queued its own end by now; this comes after it.
        Variable._execution_engine.queue_callback(self._leave)

    def _leave(self) -> None:
        self.task = -1
        missing = self.forward_module.missing.grad
        if missing is None or not missing.item():
            return
        got = torch.tensor([place in self.got for place in range(len(self.parameters))], dtype=torch.int32)
        dist.all_reduce(got, dist.ReduceOp.MAX)
        for parameter, anywhere, was_none in zip(self.parameters, got.tolist(), self.before, strict=True):
            if not anywhere and was_none:
                parameter.grad = None
