"""What is written down of a tensor: all of a small one; of a large one a sample, its norm and its digest."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import zlib
from typing import Any

import torch
import torch.distributed as dist

WHOLE = 10_000  # elements: a larger tensor is recorded as a sample of this size, its norm and its digest
SMALL = 500  # the same on ranks other than 0, which are only held against rank 0
Trace = tuple[str, bytes, float, str]  # dtype, values, norm, digest


def trace(tensor: torch.Tensor) -> Trace:
    """Return (dtype, values, norm, digest): all values and no digest, or a random sample and the digest of all."""
    if hasattr(tensor, "full_tensor"):  # of fully_shard: each rank has a part
        tensor = tensor.full_tensor()
    tensor = tensor.detach().cpu()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    values = tensor.reshape(-1).contiguous()
    norm, digest = float(values.double().norm()), ""
    if values.numel() > SMALL:
        digest = hashlib.sha256(memory(values)).hexdigest()
        limit = WHOLE if rank_of_process() == 0 else SMALL
        values = values if values.numel() <= limit else values[_sample(values.numel(), limit)]
    return str(values.dtype).removeprefix("torch."), bytes(memory(values)), norm, digest


def digests(tensor: Any, dimension: int) -> tuple[int, ...]:
    """What names the slices of a tensor along a dimension: nothing, if it has none or very many."""
    if tensor.dim() <= dimension or tensor.size(dimension) > WHOLE or tensor.layout is not torch.strided:
        return ()
    slices = tensor.detach().cpu().movedim(dimension, 0).contiguous()
    return tuple(zlib.crc32(memory(each.reshape(-1))) for each in slices)


def rank_of_process() -> int:
    """The rank by the launcher's word, else by the process group's: not every launcher sets RANK."""
    for name in ("RANK", "HOROVOD_RANK"):  # horovodrun's, for scripts that join no group of torch's
        if name in os.environ:
            return int(os.environ[name])
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def memory(values: torch.Tensor) -> Any:
    """The bytes of a contiguous tensor, without numpy; it must outlive them."""
    return (ctypes.c_char * values.nbytes).from_address(values.data_ptr()) if values.nbytes else b""


@functools.cache
def _sample(size: int, count: int) -> torch.Tensor:
    places = torch.randint(size, (count,), generator=torch.Generator().manual_seed(0), device="cpu")
    return places.sort().values
