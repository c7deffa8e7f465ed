"""DDPIFY_CHECK=1: the ranks of a run are held against each other while they train; the first difference ends it.

What has to hold here: every rank draws the same global batches (their parts are then disjoint and complete), makes the
same steps, and has the same bits in every parameter after each, whether a divided forward or code outside of it led to
its gradient. At the first divided forward of each module the gradients of the whole batch must be those of one process.

The ranks exchange what they saw through the store of the process group rather than by collectives, so that a rank which
is elsewhere is noticed instead of waited for without end.
"""

from __future__ import annotations

import functools
import json
import os
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import zip_longest
from typing import Any
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import accelerators
from ..fully_sharded.whole import is_sharded
from ..torch_internals import DRAW_INDICES, LoaderIterator, default_store, sampler_of
from . import failure

FIRST = 3  # steps that are all compared; then
EVERY = 10  # one of so many is
LIMIT = timedelta(seconds=120)  # how long a rank may be behind the others in a step
END_LIMIT = timedelta(seconds=10)  # and at its end

_running: Check | None = None


class Check:
    """What this rank has seen since it started. steps: optimizer steps; batches: a digest of all drawn so far."""

    def __init__(self) -> None:
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.store = PrefixStore("ddpify_check", default_store())
        self.steps = self.drawn = self.batches = self.posts = 0
        self.proven: WeakSet[nn.Module] = WeakSet()

    def draw(self, samples: Any) -> None:
        """Note a global batch, by the indices of its samples."""
        self.drawn += 1
        self.batches = zlib.crc32(repr(samples).encode(), self.batches)

    def step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Compare, at some steps, what the ranks have seen."""
        self.steps += 1
        if self.steps > FIRST and self.steps % EVERY:
            return
        parameters = [each for group in optimizer.param_groups for each in group["params"] if not is_sharded(each)]
        seen = self.exchange((self.steps, self.drawn, self.batches, _digests(parameters)))
        steps, drawn, batches, digests = seen[0]
        for rank, other in enumerate(seen):
            if other[0] != steps:
                self.stop(rank, f"is at step {other[0]}", "a decision is taken from the numbers of one rank")
            if other[1:3] != [drawn, batches]:
                self.stop(
                    rank,
                    f"drew other batches ({other[1]}, rank 0 {drawn})",
                    "the order of a set (start with PYTHONHASHSEED=0), a seed taken from the time, or a generator "
                    "without a seed",
                )
            far = [place for place, pair in enumerate(zip_longest(digests, other[3])) if len(set(pair)) > 1]
            if far:
                names = ", ".join(map(_name, [parameters[place] for place in far[:3] if place < len(parameters)]))
                self.stop(
                    rank,
                    f"has other values in {names}{' …' if len(far) > 3 else ''}",
                    "something that differs between ranks leads to them: random numbers drawn on some ranks only, a "
                    "change made by one rank, a gradient that no backward of the whole program has computed",
                )

    def stop(self, rank: int, what: str, reason: str) -> None:
        raise RuntimeError(f"ddpify check: at optimizer step {self.steps} rank {rank} {what}, unlike rank 0: {reason}")

    def exchange(self, mine: Any) -> list[Any]:
        """What every rank has given to its call of the same number.

        Raises:
            RuntimeError: a rank did not come here within LIMIT.
        """
        self.posts += 1
        keys = [f"{self.posts}/{rank}" for rank in range(self.world_size)]
        self.store.set(keys[self.rank], json.dumps(mine))
        try:
            self.store.wait(keys, LIMIT)
        except RuntimeError:
            late = [rank for rank, key in enumerate(keys) if not self.store.check([key])]
            raise RuntimeError(
                f"ddpify check: rank {' and '.join(map(str, late))} did not come to optimizer step {self.steps} within "
                f"{LIMIT.seconds} s of rank {self.rank}: it has ended, hangs, or makes fewer steps"
            ) from None
        if self.posts > 1:  # whoever is here has read the posts before
            self.store.delete_key(f"{self.posts - 1}/{self.rank}")
        return [json.loads(self.store.get(key)) for key in keys]


def start() -> None:
    """Begin to check, if DDPIFY_CHECK asks for it."""
    global _running
    if os.environ.get("DDPIFY_CHECK", "0") in ("", "0"):
        return
    _running = check = Check()
    failure.END_LIMIT = END_LIMIT
    register_optimizer_step_post_hook(check.step)
    original = getattr(LoaderIterator, DRAW_INDICES)

    @functools.wraps(original)
    def next_index(self: Any) -> Any:
        index = original(self)
        if not hasattr(sampler_of(self), "tells_whole_batches"):  # of which a rank loads its rows
            check.draw(index)
        return index

    setattr(LoaderIterator, DRAW_INDICES, next_index)


def draw(samples: Sequence[int]) -> None:
    """Note a global batch of which each rank loads a part."""
    if _running is not None:
        _running.draw(samples)


def gradient(module: nn.Module, same: Callable[[], bool]) -> None:
    """At the first divided forward of a module, require the gradient of the whole batch to be that of one process.

    Args:
        module: whose forward it is. same: a collective that computes both and says whether they agree.
    Raises:
        RuntimeError: they do not.
    """
    if _running is None or module in _running.proven:
        return
    _running.proven.add(module)
    if not same():
        raise RuntimeError(
            f"ddpify check: at optimizer step {_running.steps + 1} the gradients of {type(module).__name__}, divided "
            f"over {_running.world_size} ranks, are not those of the whole batch in one process; leave it out of "
            "DistributedDataParallel"
        )


def finish() -> None:
    """At the end: every rank must have made the same number of steps."""
    global _running
    check, _running = _running, None
    if check is None:
        return
    made = check.exchange(check.steps)
    for rank, steps in enumerate(made):
        if steps != made[0]:
            raise RuntimeError(f"ddpify check: rank {rank} made {steps} optimizer steps, rank 0 made {made[0]}")


def _digests(parameters: Sequence[Tensor]) -> list[int]:
    """Two numbers in one for each tensor, of all its bits; computed on its device where that can view bits."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    sums = []
    for parameter in parameters:
        stays = accelerators.module_of(parameter.device.type) is not None
        flat = parameter.detach() if stays else parameter.detach().cpu()
        flat = torch.view_as_real(flat) if flat.is_complex() else flat
        bits = flat.contiguous().view(kinds[flat.element_size()]).long()
        sums += [bits.sum().cpu(), (bits * bits).sum().cpu()]  # the first alone: opposite changes cancel (seen)
    values = torch.stack(sums).tolist() if sums else []
    return [one * 2**64 + two for one, two in zip(values[::2], values[1::2], strict=True)]


def _name(parameter: Tensor) -> str:
    from ..forward.routes import routed

    for module in routed():
        for name, each in module.named_parameters():
            if each is parameter:
                return f"{type(module).__name__}.{name}"
    return f"a tensor of shape {tuple(parameter.shape)} outside of every DistributedDataParallel"
