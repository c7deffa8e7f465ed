"""torch_xla's collectives for several CPU devices of one process.

XLA's CPU client pairs the participants of a collective by a channel id, else by the id of the compiled program. Threads
compile a program each, so those of torch_xla 2.9 never meet. Only all-gather and reduce-scatter take a channel id from
Python: here everything is an all-gather, reduced in the order of the ranks. Further (seen with torch_xla 2.9.0):

- A thread that frees an XLA tensor may hold the interpreter's lock while it waits for a program that uses it. If that
  program waits in a collective for another thread, nothing moves. So what was recorded is run before a collective, and
  the collective alone after it, with the lock released.
- XLA ends the process when a participant is 10 seconds late. So the threads meet before they enter.
- Two tables of the C++ side are not locked: the counters, when a device first reads a value back, and the tokens that
  chain collectives. So both are first used one thread at a time.
- torch.distributed keeps one default group a process; here each thread has its own.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch import Tensor

from .. import torch_internals
from ..torch_xla_internals import gathered, ordinal, reset_token, run

_CHANNEL = 1
_LIMIT = 120.0  # seconds; longer than the compilations of the ranks differ

_REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    xm.REDUCE_SUM: operator.add,
    xm.REDUCE_MUL: operator.mul,
    xm.REDUCE_AND: operator.and_,
    xm.REDUCE_OR: operator.or_,
    xm.REDUCE_MIN: torch.minimum,
    xm.REDUCE_MAX: torch.maximum,
}

_lock = threading.Lock()
_barriers: dict[tuple[int, ...], threading.Barrier] = {}
_ended: set[int] = set()


def install() -> None:
    """Replace the collectives of xla_model, and give each thread a default process group. Once a process."""
    torch_internals.give_threads_groups()
    for function in (all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute):
        setattr(xm, function.__name__, function)


def prepare_thread(device: str) -> None:
    """Enter a device in the tables of the C++ side, before anything else is done on it."""
    with _lock:
        reset_token(device)
        torch.ones((), device=device).item()


def leave(rank: int) -> None:
    """A rank has ended: whoever waits for it, or will, is told so."""
    with _lock:
        _ended.add(rank)
        for ranks, barrier in _barriers.items():
            if rank in ranks:
                barrier.abort()


def all_reduce(
    reduce_type: str, inputs: Any, scale: float = 1.0, groups: list[list[int]] | None = None, pin_layout: bool = True
) -> Any:
    """A tensor is reduced into a new one, tensors in a list in place."""
    reduced = _reduced(reduce_type, _listed(inputs), scale, groups)
    return reduced[0] if isinstance(inputs, Tensor) else _delivered(reduced, inputs, inputs)


def all_gather(
    value: Any,
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: Any = None,
    pin_layout: bool = True,
    channel_id: Any = None,
    use_global_device_ids: Any = None,
) -> Any:
    """The ranks' tensors one after the other along `dim`."""
    gathered = [torch.cat(parts.unbind(), dim) for parts in _gathered(_listed(value), groups)]
    return _delivered(gathered, value, output)


def reduce_scatter(
    reduce_type: str,
    input: Any,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: list[list[int]] | None = None,
    output: Any = None,
    pin_layout: bool = True,
    channel_id: Any = None,
    use_global_device_ids: Any = None,
) -> Any:
    """This rank's share of the reduced tensors."""
    tensors = _listed(input)
    place = _members(tensors[0], groups).index(_rank(tensors[0]))
    reduced = _reduced(reduce_type, tensors, scale, groups)
    return _delivered([tensor.chunk(shard_count, scatter_dim)[place] for tensor in reduced], input, output)


def all_to_all(
    value: Tensor,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> Tensor:
    """Of each rank's tensor the piece meant for this rank, joined."""
    place = _members(value, groups).index(_rank(value))
    parts = _gathered([value], groups)[0].unbind()
    return torch.cat([part.chunk(split_count, split_dimension)[place] for part in parts], concat_dimension)


def collective_permute(value: Tensor, pairs: Sequence[Sequence[int]]) -> Tensor:
    """The tensor of the rank that sends to this one, zeros if none does."""
    parts = _gathered([value], None)[0]
    source = next((source for source, destination in pairs if destination == _rank(value)), None)
    return torch.zeros_like(value) if source is None else parts[source].clone()


def _reduced(kind: str, tensors: list[Tensor], scale: float, groups: list[list[int]] | None) -> list[Tensor]:
    reduced = [functools.reduce(_REDUCTIONS[kind], parts.unbind()) for parts in _gathered(tensors, groups)]
    return [tensor * scale for tensor in reduced] if scale != 1.0 else reduced


@torch.no_grad()
def _gathered(tensors: list[Tensor], groups: list[list[int]] | None) -> list[Tensor]:
    """Each tensor of all ranks, stacked: [number of ranks, *shape]. One collective for each dtype."""
    members = _members(tensors[0], groups)
    every = groups or [members]
    found: dict[int, Tensor] = {}
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        chosen = [number for number, tensor in enumerate(tensors) if tensor.dtype == dtype]
        flat = torch.cat([tensors[number].detach().reshape(-1) for number in chosen]).unsqueeze(0)
        run(flat)
        _meet(tuple(sorted(rank for group in every for rank in group)))
        device = str(flat.device)
        with _lock:
            reset_token(device)
            everything = gathered(flat, len(members), every, _CHANNEL)
            reset_token(device)
        run(everything)
        pieces = everything.split([tensors[number].numel() for number in chosen], dim=1)
        for number, piece in zip(chosen, pieces, strict=True):
            found[number] = piece.reshape(len(members), *tensors[number].shape)
    return [found[number] for number in range(len(tensors))]


def _meet(ranks: tuple[int, ...]) -> None:
    with _lock:
        barrier = _barriers.setdefault(ranks, threading.Barrier(len(ranks)))
        if _ended.intersection(ranks):
            barrier.abort()
    try:
        barrier.wait(_LIMIT)
    except threading.BrokenBarrierError:
        missing = ", ".join(map(str, sorted(_ended.intersection(ranks))))
        why = f"rank {missing} has ended" if missing else f"a rank did not come within {_LIMIT:.0f} s"
        raise RuntimeError(
            f"a collective waits for ranks that do not come: {why}; every rank must take the same steps"
        ) from None


def _rank(tensor: Tensor) -> int:
    """The rank of a tensor's device. Not global_ordinal(): autograd may call from a thread of its own."""
    return ordinal(str(tensor.device))


def _members(tensor: Tensor, groups: list[list[int]] | None) -> list[int]:
    if not groups:
        return list(range(xr.world_size()))
    return next(group for group in groups if _rank(tensor) in group)


def _listed(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _delivered(results: list[Tensor], given: Any, output: Any) -> Any:
    """The results in the form that was asked for: written into `output`, or a list for a list, or one tensor."""
    if output is None:
        return results if isinstance(given, (list, tuple)) else results[0]
    with torch.no_grad():
        for place, result in zip(_listed(output), results, strict=True):
            place.copy_(result)
    return output
