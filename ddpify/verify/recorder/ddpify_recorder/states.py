"""What a step has to do with: parameters and gradients of an optimizer, running statistics, random generators."""

from __future__ import annotations

import gc
import random
import sys
import weakref
import zlib
from collections.abc import Iterator

import torch
from torch import nn
from torch.optim import Optimizer

from ddpify_recorder.traces import Trace, memory, trace

_STATISTICS = "running_mean", "running_var"


def parameters_of(optimizer: Optimizer) -> list[torch.Tensor]:
    """Its parameters; on XLA everything recorded so far is run first, rather than a part of it for each of them."""
    if "torch_xla" in sys.modules:
        sys.modules["torch_xla"].sync()
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def gradients_of(optimizer: Optimizer) -> list[Trace | None]:
    return [None if p.grad is None else trace(p.grad) for p in parameters_of(optimizer)]


class RunningStatistics:
    """Those of every module that the script has still, in order of creation."""

    def __init__(self) -> None:
        self._modules: weakref.WeakKeyDictionary[nn.Module, None] = weakref.WeakKeyDictionary()
        self._has_grown = False

    def add(self, module: nn.Module, name: str) -> None:
        """A module has a buffer of this name from now on."""
        if name in _STATISTICS:
            self._modules.setdefault(module, None)
            self._has_grown = True

    def __iter__(self) -> Iterator[torch.Tensor]:
        """Without those of a model that was dropped for the next one: where it lies in a cycle it lives until garbage
        is collected, at another step of each run."""
        if self._has_grown:
            gc.collect()
            self._has_grown = False
        for module in list(self._modules):
            for name, buffer in module._buffers.items():
                if buffer is not None and name in _STATISTICS:
                    yield buffer


def names_of(parameters: list[torch.Tensor]) -> list[str]:
    """What the parameters are called in the outermost module that holds them; "" for a tensor outside of modules."""
    modules = [value for value in gc.get_objects() if issubclass(type(value), nn.Module) and "_modules" in vars(value)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    names: dict[int, str] = {}
    for module in modules:
        if id(module) not in inner:
            for name, parameter in module.named_parameters():
                names.setdefault(id(parameter), f"{type(module).__name__}.{name}")
    return [names.get(id(parameter), "") for parameter in parameters]


def random_states() -> tuple[int, ...]:
    """Digests of the host's generators (torch's, Python's, numpy's); equal ones have drawn the same."""
    numpy = sys.modules.get("numpy")
    digests = [zlib.crc32(memory(state := torch.get_rng_state())), zlib.crc32(repr(random.getstate()).encode())]
    if numpy:
        key, *place = numpy.random.get_state()[1:]
        digests.append(zlib.crc32(repr(place).encode(), zlib.crc32(key.tobytes())))
    del state  # its memory was read
    return tuple(digests)
