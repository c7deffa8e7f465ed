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


def parameters_of(optimizer: Optimizer) -> list[torch.Tensor]:
    """Its parameters; on XLA everything recorded so far is run first, rather than a part of it for each of them."""
    if "torch_xla" in sys.modules:
        sys.modules["torch_xla"].sync()
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def gradients_of(optimizer: Optimizer) -> list[Trace | None]:
    return [None if p.grad is None else trace(p.grad) for p in parameters_of(optimizer)]


def running_statistics(modules: weakref.WeakKeyDictionary[nn.Module, None]) -> Iterator[torch.Tensor]:
    """The running statistics of every module that lives, in order of creation."""
    for module in list(modules):
        for name, buffer in module._buffers.items():
            if buffer is not None and name in ("running_mean", "running_var"):
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
