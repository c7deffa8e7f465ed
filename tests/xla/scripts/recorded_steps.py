"""Imported by a script under test: leaves the parameters of each rank after each step in rank<N>.pt."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

_steps: dict[int, list[list[torch.Tensor]]] = {}


def _record(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    rank = dist.get_rank()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    _steps.setdefault(rank, []).append([p.detach().cpu().clone() for p in parameters])
    torch.save(_steps[rank], f"rank{rank}.pt")


register_optimizer_step_post_hook(_record)
