"""What torch has for devices with memory and random numbers of their own: `torch.cuda`, `torch.xpu`, and their like."""

from __future__ import annotations

from typing import Any

import torch

# The devices whose tensors a backend carries. What is not here carries those of the host.
OF_BACKEND = {"nccl": "cuda", "xccl": "xpu", "ccl": "xpu"}


def module_of(device_type: str) -> Any:
    """The module for a type of devices, each with random numbers of its own; None for the host and all others."""
    module = getattr(torch, device_type, None)
    return module if hasattr(module, "default_generators") else None


def module_in_use() -> Any:
    """The module for this machine's accelerator, once this process has begun to use it; None before, or without one."""
    device = torch.accelerator.current_accelerator()
    module = None if device is None else module_of(device.type)
    return module if module is not None and module.is_initialized() else None
