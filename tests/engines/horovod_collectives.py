"""Run by horovodrun: every collective of torch.distributed over Horovod, as gloo has it, on each rank."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
from ddpify_runtime import destroy_process_group, init_process_group
from torch import Tensor

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool),
)
GLOO_GATHERS = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8)


def of(rank: int, dtype: torch.dtype, *shape: int) -> Tensor:
    """Some numbers of a rank, which every rank can make."""
    numbers = torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(rank))
    return numbers > 2 if dtype == torch.bool else numbers.to(dtype)


def all_reduce(group: Any) -> Any:
    found: list[Any] = []
    for dtype in DTYPES:
        for how in (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
            if (dtype.is_complex or dtype == torch.bool) and how != dist.ReduceOp.SUM:
                continue
            for tensor in (of(rank, dtype, 3, 2), of(rank, dtype), of(rank, dtype, 0), of(rank, dtype, 3, 2).t()):
                dist.all_reduce(tensor, how, group=group)
                found.append((str(dtype), str(how), tensor))
    for how in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        tensor = of(rank, torch.int64, 4)
        dist.all_reduce(tensor, how, group=group)
        found.append((str(how), tensor))
    return found


def under_way(group: Any) -> Any:
    tensors = [torch.full((number % 3 + 1,), float(rank + number)) for number in range(100)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    return tensors


def sparse(group: Any) -> Any:
    indices = torch.arange(rank * 2).unsqueeze(0)
    tensor = torch.sparse_coo_tensor(indices, torch.ones(rank * 2, 3) * (rank + 1), (8, 3)).coalesce()
    dist.all_reduce(tensor, group=group)
    return tensor.to_dense()


def broadcast(group: Any) -> Any:
    found = []
    for dtype in DTYPES:
        for tensor in (of(rank, dtype, 3, 2), of(rank, dtype), of(rank, dtype, 0), of(rank, dtype, 3, 2).t()):
            dist.broadcast(tensor, world - 1, group=group)
            found.append(tensor)
    return found


def gathers(group: Any) -> Any:
    found: list[Any] = []
    for dtype in DTYPES:
        for shape in ((3, 2), (), (0,)):
            parts = [of(0, dtype, *shape) for _ in range(world)]
            dist.all_gather(parts, of(rank, dtype, *shape), group=group)
            found.append(parts)
            if dtype not in GLOO_GATHERS:
                continue
            given = [of(9, dtype, *shape) for _ in range(world)] if rank == 1 else None
            dist.gather(of(rank, dtype, *shape), given, dst=1, group=group)
            found.append(given)
    whole = torch.zeros(world * 2, 3)
    dist.all_gather_into_tensor(whole, of(rank, torch.float32, 2, 3), group=group)
    return found, whole


def scatter(group: Any) -> Any:
    found = []
    for dtype in GLOO_GATHERS:
        tensor = torch.zeros(3, dtype=dtype)
        dist.scatter(tensor, [of(each, dtype, 3) for each in range(world)] if rank == 0 else None, 0, group=group)
        found.append(tensor)
    return found


def reduces(group: Any) -> Any:
    tensor = of(rank, torch.float32, 3)
    dist.reduce(tensor, 0, group=group)
    part, base = torch.zeros(3), torch.zeros(2, 3)
    dist.reduce_scatter(part, [of(rank + each, torch.float32, 3) for each in range(world)], group=group)
    dist.reduce_scatter_tensor(base, of(rank, torch.float32, world * 2, 3), group=group)
    return tensor if rank == 0 else None, part, base


def exchanges(group: Any) -> Any:
    sizes = [[(sender + receiver) % 3 for receiver in range(world)] for sender in range(world)]
    taken = [sizes[sender][rank] for sender in range(world)]
    uneven = torch.zeros(sum(taken), 2, dtype=torch.bfloat16)
    given = of(rank, torch.bfloat16, sum(sizes[rank]), 2)
    dist.all_to_all_single(uneven, given, taken, sizes[rank], group=group)
    even = torch.zeros(world, 2)
    dist.all_to_all_single(even, of(rank, torch.float32, world, 2), group=group)
    return uneven, even


def objects(group: Any) -> Any:
    found: list[Any] = [None] * world
    dist.all_gather_object(
        found, {"rank": rank, "tensor": of(rank, torch.float32, 2), "words": "x" * rank}, group=group
    )
    sent: list[Any] = [("from", torch.arange(3))] if rank == 0 else [None]
    dist.broadcast_object_list(sent, 0, group=group)
    dist.barrier(group=group)
    return found, sent


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


CALLS: tuple[Callable[[Any], Any], ...] = (
    *(all_reduce, under_way, sparse, broadcast, gathers, scatter, reduces, exchanges, objects),
)

init_process_group("horovod")
rank, world = dist.get_rank(), dist.get_world_size()
assert dist.get_backend() == "horovod", dist.get_backend()
gloo = dist.new_group(backend="gloo")
for call, mode in product(CALLS, (True, False)):
    with torch.inference_mode(mode):
        ours, theirs = call(None), call(gloo)
    assert same(ours, theirs), f"{call.__name__} on rank {rank}: {ours} is not {theirs}"
pair = dist.new_group([0, world - 1])
number = torch.ones(1)
if rank in (0, world - 1):
    dist.all_reduce(number, group=pair)
    assert number.item() == 2.0
dist.destroy_process_group(gloo)
print(f"{len(CALLS)} kinds on {world} processes")
destroy_process_group()
