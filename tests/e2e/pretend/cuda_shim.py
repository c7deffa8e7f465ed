"""Lets a script that was written for one GPU run on a machine without: what it puts on "cuda" stays on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

TYPES = ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool")


class _OnCpu(TorchFunctionMode):
    """Replaces a CUDA device among the arguments of every torch function by the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*map(_moved, args), **{name: _moved(value) for name, value in (kwargs or {}).items()})


def install() -> None:
    """Make every request for CUDA one for the CPU, in this process; `torch.cuda.is_available()` stays False."""
    torch.Tensor.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign]
    torch.nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign]
    for name in TYPES:
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    for name in ("synchronize", "set_device", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *args, **kwargs: None)  # one each: torch.compile's tables want no doubles
    _OnCpu().__enter__()  # type: ignore[no-untyped-call]


def _moved(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value
