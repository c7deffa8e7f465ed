"""Rows of a batch over ranks: the shard `[rank::world_size]`, its inverse, and both as autograd functions.

A tensor is either whole (the same on every rank) or a shard (this rank's rows). Between the two, gradients obey one
rule: inside the shared region every gradient is `world_size` times this rank's part of the true one, outside it is the
true one. DistributedDataParallel then takes the mean over ranks, which is the true gradient for parameters used inside
(sum of the parts), outside (mean of equal values), or both; a regulariser on the weights needs no exception (HAZARDS
L6).
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

from .. import engines
from ..agreement import interrupts
from ..torch_internals import apply, default_group
from . import exchange, pickled


class Rows(NamedTuple):
    """Where the samples lie in a tensor: along `dim`, whose size is a multiple of the number of samples.

    Where the multiple is more than one, samples vary slowest (`major`, as in `x.view(batch * time, -1)` with the batch
    first) or fastest (time first).
    """

    dim: int = 0
    major: bool = True


class OwnPlace(Protocol):
    """Where the samples lie in a tensor in which each has rows of its own number (graphs.py)."""

    def shard(self, tensor: Tensor) -> Tensor:
        """As `shard`."""

    def gather(self, local: Tensor) -> Tensor:
        """As `gather`."""


AnyPlace: TypeAlias = Rows | OwnPlace


def shard(tensor: Tensor, total: int, rows: AnyPlace) -> Tensor:
    """This rank's samples of a whole tensor that holds `total` of them; a copy, in the order of the whole."""
    if not isinstance(rows, Rows):
        return rows.shard(tensor)
    if rows.dim == 0 and tensor.size(0) == total and not engines.of(tensor.device).records:
        rank, ranks = _rank_and_size()
        return tensor[rank::ranks].contiguous()
    opened = _open(tensor, total, rows)
    dim = rows.dim if rows.major else rows.dim + 1
    if engines.of(tensor.device).records:
        mine = _numbers(dist.get_rank(), total, dist.get_world_size(), tensor.device)
        part = opened.index_select(dim, mine)  # the rank as data: the graph is that of every rank
    else:
        index = [slice(None)] * opened.dim()
        rank, ranks = _rank_and_size()
        index[dim] = slice(rank, None, ranks)
        part = opened[tuple(index)]
    return part.flatten(rows.dim, rows.dim + 1).contiguous()


def gather(local: Tensor, total: int, rows: AnyPlace) -> Tensor:
    """The whole tensor of `total` samples from the shards of all ranks, in the order of the whole; a collective."""
    if not isinstance(rows, Rows):
        return rows.gather(local)
    ranks = world_size()
    mine = count(total)
    opened = _open(local, mine, rows)
    dim = rows.dim if rows.major else rows.dim + 1
    flat = opened.detach().movedim(dim, 0).contiguous()
    most = -(-total // ranks)
    if mine < most:
        flat = torch.cat([flat, flat.new_zeros(most - mine, *flat.shape[1:])])
    sent = flat.to(torch.uint8) if flat.dtype == torch.bool else flat
    shards = gather_parts(sent)
    if engines.of(local.device).records:  # no view of it could be written to, least of all below a dispatch mode
        stacked = torch.stack(shards, dim=1).flatten(0, 1)[:total].to(local.dtype)
        return stacked.movedim(0, dim).flatten(rows.dim, rows.dim + 1)
    size = list(local.shape)
    size[rows.dim] = size[rows.dim] // mine * total
    whole = local.new_empty(size)  # not a view of something: the script may change it in place
    placed = _open(whole, total, rows).movedim(dim, 0)
    for rank, part in enumerate(shards):
        placed[rank::ranks] = part[: len(range(rank, total, ranks))]
    return whole


def count(total: int) -> int:
    """How many of `total` samples are this rank's."""
    rank, size = _rank_and_size()
    return (total - rank - 1) // size + 1


def own_rank() -> int:
    """As `dist.get_rank()`, in less time; that of the ranks that play, where some do."""
    return _rank_and_size()[0]


def world_size() -> int:
    """As `dist.get_world_size()`, which takes ten times as long, several times before each forward."""
    return _rank_and_size()[1]


_last: tuple[Callable[[], Any], tuple[int, int]] = lambda: None, (0, 1)  # a weak reference: it has to end in time
_played: ContextVar[tuple[int, int] | None] = ContextVar("played", default=None)


@contextmanager
def played(ranks: int) -> Iterator[None]:
    """While shares are those of some ranks only: this rank is one of them, another one too.

    A sum over ranks then takes each share once (`once`); where that is not seen to, nothing may be sent.
    """
    rank, size = _rank_and_size()
    token = _played.set((rank % ranks, ranks) if ranks < size else None)
    try:
        yield
    finally:
        _played.reset(token)


def are_played() -> bool:
    """Whether shares are those of some ranks only."""
    return _played.get() is not None


def once(summand: Tensor) -> Tensor:
    """This rank's summand of a sum over ranks, where it is: nothing if it is of a share that another rank has, too."""
    as_played = _played.get()
    return summand if as_played is None or dist.get_rank() < as_played[1] else summand.zero_()


def _rank_and_size() -> tuple[int, int]:
    """`get_rank()` looks for the group among all, and a group has to be asked in C++."""
    global _last
    if (as_played := _played.get()) is not None:
        return as_played
    group = default_group()
    last, found = _last  # at once: threads may have groups of their own
    if last() is not group or group is None:
        found = group.rank(), group.size()
        _last = weakref.ref(group), found
    return found


@lru_cache(maxsize=64)
def _numbers(rank: int, total: int, world_size: int, device: torch.device) -> Tensor:
    """The numbers of a rank's samples, sent to the device once."""
    return torch.arange(rank, total, world_size, device="cpu").to(device)


def begin_sum(tensor: Tensor) -> Any:
    """Begin to add a tensor over ranks, where it is; the work to wait for.

    Asked of the process group itself, as torch's reducer does: `dist.all_reduce` takes longer than a small sum.
    """
    group: Any = default_group()
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return exchange.Sum(real) if exchange.is_short(real) else group.allreduce([real])


def gather_parts(tensor: Tensor) -> list[Tensor]:
    """The tensors of all ranks, which are of one size, in their order; a collective."""
    if exchange.is_short(tensor):
        return exchange.parts(tensor)
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return parts


# Its older name warns from torch 2.13 on.
_all_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def gather_in_one(tensor: Tensor) -> Tensor:
    """The same for an accelerator's tensor: (ranks, *its size), without copies of the parts."""
    ranks = dist.get_world_size()
    whole = tensor.new_empty(ranks * len(tensor), *tensor.shape[1:])
    _all_gather_single(whole, tensor)
    return whole.view(ranks, *tensor.shape)


def add_over_ranks(tensor: Tensor) -> None:
    """Add a tensor over ranks, where it is."""
    if engines.of(tensor.device).records:
        dist.all_reduce(tensor)
    else:
        interrupts.wait(begin_sum(tensor))


def extreme_over_ranks(tensor: Tensor, how: Any) -> None:
    """The least or the greatest of each number of a tensor over ranks, where it is; a collective.

    Args:
        how: dist.ReduceOp.MIN or MAX.
    """
    if exchange.is_short(tensor):
        every = torch.stack(exchange.parts(tensor))
        tensor.copy_(every.amin(0) if how == dist.ReduceOp.MIN else every.amax(0))
    else:
        dist.all_reduce(tensor, how)


def spread(numbers: Tensor, group: Any = None) -> Tensor:
    """By how much each of some numbers differs between the ranks, 0 if not at all; a collective.

    Args:
        numbers: of one dimension, finite, of one dtype on every rank. group: the ranks; all by default.
    """
    extremes = torch.cat([numbers, -numbers])
    if group is None:
        extreme_over_ranks(extremes, dist.ReduceOp.MAX)
    else:
        dist.all_reduce(extremes, dist.ReduceOp.MAX, group)
    highest, lowest = extremes.chunk(2)
    return highest + lowest


def broadcast_object(value: Any, src: int = 0, group: Any = None) -> Any:
    """One rank's object on every rank; a collective.

    torch's `broadcast_object_list` needs numpy, which a training machine need not have.

    Args:
        value: what can be pickled; that of ranks other than `src` is not looked at. group: the ranks; all by default.
    """
    data = bytearray(pickle.dumps(value) if dist.get_rank() == src else b"")
    size = torch.tensor([len(data)], device="cpu")
    dist.broadcast(size, src, group)
    if dist.get_rank() != src:
        data = bytearray(int(size))
    dist.broadcast(torch.frombuffer(data, dtype=torch.uint8), src, group)  # the tensor is the bytes themselves
    return pickled.loads(data)


def gather_objects(value: Any, group: Any = None) -> list[Any]:
    """The objects of all ranks, in their order; a collective. Without numpy, as `broadcast_object`."""
    sent, buffers, received = _bytes(value, group)
    dist.all_gather(received, sent, group)
    return [pickled.loads(buffer) for buffer in buffers]  # which ends where its value ends


def gather_objects_on(dst: int, value: Any, group: Any = None) -> list[Any]:
    """The objects of all ranks on one of them, in their order, none on the others; a collective."""
    sent, buffers, received = _bytes(value, group, dst)
    dist.gather(sent, received or None, dst, group)
    return [pickled.loads(buffer) for buffer in buffers]


def _bytes(value: Any, group: Any, dst: int | None = None) -> tuple[Tensor, list[bytearray], list[Tensor]]:
    """A value pickled, as long as the longest of all ranks; room for those of all, and tensors of it, where they go."""
    data = pickle.dumps(value)
    sizes = [torch.zeros(1, dtype=torch.int64, device="cpu") for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, torch.tensor([len(data)], device="cpu"), group)
    most = max(int(size) for size in sizes)
    buffers = [bytearray(most) for _ in sizes] if dst in (None, dist.get_rank()) else []
    sent = torch.frombuffer(bytearray(data.ljust(most, b"\0")), dtype=torch.uint8)
    return sent, buffers, [torch.frombuffer(buffer, dtype=torch.uint8) for buffer in buffers]


def divides(total: int, device: torch.device) -> bool:
    """Whether there is a row for every rank; as many for each where all have to run one program (X6)."""
    ranks = world_size()
    return total >= ranks and (total % ranks == 0 or not engines.of(device).records)


def _open(tensor: Tensor, samples: int, rows: Rows) -> Tensor:
    opened: Tensor = tensor.unflatten(rows.dim, (samples, -1) if rows.major else (-1, samples))
    return opened


class Split(Function):
    """Whole to shard; the gradient is gathered, so that whatever lies before sees all of it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, total: int, rows: AnyPlace, on_enter: Callable[[], None]) -> Tensor:
        ctx.arguments = total, rows, on_enter
        return shard(tensor, total, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return gather_with_grad(gradients[0], *ctx.arguments) / world_size(), None, None, None


class Gather(Function):
    """Shard to whole."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, total: int, rows: AnyPlace, on_enter: Callable[[], None]) -> Tensor:
        ctx.arguments = total, rows, on_enter
        return gather(local, total, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        total, rows, on_enter = ctx.arguments
        on_enter()
        return split(gradients[0], total, rows, on_enter) * world_size(), None, None, None


class Leave(Function):
    """A value that is the same on every rank leaves the shared region; its gradient is the true one on both sides."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, on_enter: Callable[[], None]) -> Tensor:
        ctx.on_enter = on_enter
        return value.view_as(value) if value.dim() else value.clone()  # `loss += penalty` changes it in place

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.on_enter()
        return leave(gradients[0], ctx.on_enter), None


class SumOverRanks(Function):
    """All-reduce; its gradient is the same."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        total = tensor.clone()
        add_over_ranks(once(total))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return sum_over_ranks(gradients[0])


def split(tensor: Tensor, total: int, rows: AnyPlace, on_enter: Callable[[], None]) -> Tensor:
    """This rank's samples of a whole tensor; its gradient is gathered from the ranks.

    Args:
        tensor: whole, with `total` samples along `rows`.
        on_enter: called when a backward pass enters the shared region here.
    """
    if not (tensor.requires_grad and torch.is_grad_enabled()):
        return shard(tensor.detach(), total, rows)
    part: Tensor = apply(Split, tensor, total, rows, on_enter)
    return part


def gather_with_grad(local: Tensor, total: int, rows: AnyPlace, on_enter: Callable[[], None]) -> Tensor:
    """The whole tensor from the shards of all ranks; its gradient is split. Arguments as for `split`."""
    whole: Tensor = apply(Gather, local, total, rows, on_enter)
    return whole


def leave(value: Tensor, on_enter: Callable[[], None]) -> Tensor:
    """The same value, such as a loss of the whole batch; `on_enter` as for `split`."""
    if not (value.requires_grad and torch.is_grad_enabled()):
        return value.detach()
    left: Tensor = apply(Leave, value, on_enter)
    return left


def sum_over_ranks(tensor: Tensor) -> Tensor:
    """The sum of a tensor over ranks; differentiable any number of times."""
    total: Tensor = apply(SumOverRanks, tensor)
    return total
