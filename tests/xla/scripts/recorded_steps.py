"""Imported by a script under test: leaves the parameters of each rank after each step in rank<N>.pt.

The weights that a model starts with are drawn here, when it is wrapped: the devices under test are threads, which share
torch's generator and draw from it in an order that changes from run to run.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook

_steps: dict[int, list[list[torch.Tensor]]] = {}
_wrap = DistributedDataParallel.__init__


def _wrap_with_weights(self: DistributedDataParallel, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / max(parameter[:1].numel(), 1) ** 0.5)
    _wrap(self, module, *args, **kwargs)


def _record(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    rank = dist.get_rank()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    _steps.setdefault(rank, []).append([p.detach().cpu().clone() for p in parameters])
    torch.save(_steps[rank], f"rank{rank}.pt")


DistributedDataParallel.__init__ = _wrap_with_weights  # type: ignore[method-assign]
register_optimizer_step_post_hook(_record)
