"""The gradients of one module, averaged over ranks by torch's DistributedDataParallel after any kind of backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import Variable


class _Forward(nn.Module):
    """What DistributedDataParallel wraps: calls the user's module past its routed call."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


class Reduction:
    """One DistributedDataParallel, used by every forward with the same set of trainable parameters."""

    def __init__(self, module: nn.Module, call: Callable[..., Any], options: dict[str, Any]) -> None:
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.call = call
        self.ddp: nn.parallel.DistributedDataParallel | None = None
        if self.parameters:
            self.ddp = nn.parallel.DistributedDataParallel(
                _Forward(module, call), forward_sync_buffers=False, **options
            )
        self.in_backward = False
        self.by_hand = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's samples."""
        if self.ddp is None:
            return self.call(*args, **kwargs)
        with self.ddp.no_sync():  # the reducer is armed by `enter`
            return self.ddp(*args, **kwargs)

    def enter(self) -> None:
        """A backward pass enters the shared region: reduce what it accumulates."""
        if self.in_backward or self.ddp is None:
            return
        self.in_backward = True
        if not self.by_hand:
            self.ddp.reducer._rebuild_buckets()
            self.ddp.reducer.prepare_for_backward([])
        later = Variable._execution_engine.queue_callback
        # Twice: the reducer queues its own end after the first of these.
        later(lambda: later(self._leave))

    def _leave(self) -> None:
        self.in_backward = False
        if self.ddp is None:
            return
        if not self.by_hand:
            try:
                self.ddp.reducer._check_reducer_finalized()
                return
            except RuntimeError:
                # Some parameters got no gradient in this pass, so the reducer waits for them (M4, L14). The local
                # gradients are still whole: it copies back only at its end. From now on this module is reduced here.
                self.by_hand = True
                self.ddp.reducer._reset_state()
        world_size = dist.get_world_size()
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        for dtype in dict.fromkeys(gradient.dtype for gradient in gradients if not gradient.is_sparse):
            same = [gradient for gradient in gradients if gradient.dtype == dtype and not gradient.is_sparse]
            flat = torch.cat([gradient.detach().reshape(-1) for gradient in same])
            dist.all_reduce(flat)
            flat /= world_size
            for gradient, part in zip(same, flat.split([gradient.numel() for gradient in same]), strict=True):
                gradient.detach().copy_(part.view_as(gradient))
        for gradient in gradients:
            if gradient.is_sparse:
                dist.all_reduce(gradient)
                gradient /= world_size
