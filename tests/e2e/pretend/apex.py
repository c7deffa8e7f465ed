"""NVIDIA's apex.amp, as a script on a machine without GPUs has it: float32 (O0), a scale of losses, skipped steps."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch

_scales: list[float] = []
_DYNAMIC = 2.0**16


def _initialize(models: Any, optimizers: Any = None, num_losses: int = 1, **options: Any) -> Any:
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    if any(isinstance(each, wrappers) for each in (models if isinstance(models, list) else [models])):
        raise RuntimeError("Parallel wrappers should only be applied to the model(s) AFTER amp.initialize")
    scale = options.get("loss_scale", "dynamic")
    _scales[:] = [_DYNAMIC if scale == "dynamic" else float(scale)] * num_losses
    return models if optimizers is None else (models, optimizers)


def _master_params(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    return (each for group in optimizer.param_groups for each in group["params"])


@contextlib.contextmanager
def _scale_loss(
    loss: torch.Tensor, optimizers: Any, loss_id: int = 0, delay_unscale: bool = False
) -> Iterator[torch.Tensor]:
    several = optimizers if isinstance(optimizers, list) else [optimizers]
    parameters = [each for optimizer in several for each in _master_params(optimizer)]
    scale = _scales[loss_id]
    yield loss.float() * scale
    if delay_unscale:
        return
    gradients = [each.grad for each in parameters if each.grad is not None]
    overflows = not all(torch.isfinite(each).all() for each in gradients)
    for each in gradients:
        each.div_(scale)
    for optimizer in several if overflows else ():
        _scales[loss_id] = scale / 2
        _skips_once(optimizer)


def _skips_once(optimizer: torch.optim.Optimizer) -> None:
    step = optimizer.step

    def skip(*_: object) -> None:
        print("a step is skipped")
        optimizer.step = step  # type: ignore[method-assign]

    optimizer.step = skip  # type: ignore[assignment,method-assign]


amp = types.SimpleNamespace(initialize=_initialize, scale_loss=_scale_loss, master_params=_master_params)
