"""Records every optimizer step of the script that this interpreter runs; Python imports it before the script.

It needs torch and nothing else; tensors of any device are copied to the CPU. `DDPIFY_PRETEND` names modules to be
installed first. `DDPIFY_RECORD` is a folder: after each step one pickle is appended to `rank<RANK>.pkl` there, so that
a process which crashes or is killed leaves all the steps that it made. A record is (optimizer, parameters, gradients,
forwards): the optimizer's number in order of creation, two lists of traces (see `_trace`), with None for an absent
gradient, and how many DistributedDataParallel forwards came before.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import os
import pickle
import random
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import torch

WHOLE = 20_000  # elements: a larger tensor is recorded as a sample of this size, its norm and its digest
SEED = 1234
Trace = tuple[str, bytes, float, str]  # dtype, values, norm, digest


def _install(folder: Path) -> None:
    seed = SEED + int(os.environ.get("RANK", "0"))
    _seed(seed)

    import torch
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
    depths: dict[int, int] = {}
    grads: dict[int, list[Trace | None]] = {}
    streams: dict[int, BinaryIO] = {}
    forwards = [0]

    def number_of(optimizer: Optimizer) -> int:
        return numbers.setdefault(optimizer, len(numbers))

    original_init = Optimizer.__init__

    @functools.wraps(original_init)
    def init(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        number_of(self)

    def before(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        number = number_of(optimizer)
        depths[number] = depths.get(number, 0) + 1
        if depths[number] == 1:  # a subclass that calls super().step() is one step
            grads[number] = _gradients(optimizer)

    def after(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        number = number_of(optimizer)
        depths[number] -= 1
        if depths[number]:
            return
        used = grads.pop(number)
        if len(args) > 1 or kwargs.get("closure") is not None:  # the closure computed them within the step
            used = _gradients(optimizer)
        record = number, [_trace(p) for p in _parameters(optimizer)], used, forwards[0]
        rank = _rank()
        if rank not in streams:
            streams[rank] = (folder / f"rank{rank}.pkl").open("ab", buffering=0)
        streams[rank].write(pickle.dumps(record, protocol=5))

    original_forward = DistributedDataParallel.forward

    @functools.wraps(original_forward)
    def forward(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
        forwards[0] += 1
        return original_forward(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    DistributedDataParallel.forward = forward  # type: ignore[method-assign]
    Optimizer.__init__ = init  # type: ignore[method-assign]
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    torch.manual_seed(seed)


def _seed(seed: int) -> None:
    """Unseeded scripts become comparable; each rank starts elsewhere, so that a missing broadcast shows (S1)."""
    random.seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed)


def _rank() -> int:
    """The rank by the launcher's word, else by the process group's: not every launcher sets RANK."""
    if "RANK" in os.environ:
        return int(os.environ["RANK"])
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Its parameters; on XLA everything recorded so far is run first, rather than a part of it for each of them."""
    if "torch_xla" in sys.modules:
        sys.modules["torch_xla"].sync()
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _gradients(optimizer: torch.optim.Optimizer) -> list[Trace | None]:
    return [None if p.grad is None else _trace(p.grad) for p in _parameters(optimizer)]


def _trace(tensor: torch.Tensor) -> Trace:
    """Return (dtype, values, norm, digest): all values and no digest, or a random sample and the digest of all."""
    import torch

    tensor = tensor.detach().cpu()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    values = tensor.reshape(-1).contiguous()
    norm, digest = float(values.double().norm()), ""
    if values.numel() > WHOLE:
        digest = hashlib.sha256(_memory(values)).hexdigest()
        values = values[_sample(values.numel())]
    return str(values.dtype).removeprefix("torch."), bytes(_memory(values)), norm, digest


def _memory(values: torch.Tensor) -> Any:
    """The bytes of a contiguous tensor, without numpy; it must outlive them."""
    return (ctypes.c_char * values.nbytes).from_address(values.data_ptr())


@functools.cache
def _sample(size: int) -> torch.Tensor:
    import torch

    places = torch.randint(size, (WHOLE,), generator=torch.Generator().manual_seed(0))
    return places.sort().values


for _module in os.environ.get("DDPIFY_PRETEND", "").split():
    importlib.import_module(_module).install()
if "DDPIFY_RECORD" in os.environ:
    _install(Path(os.environ["DDPIFY_RECORD"]))
