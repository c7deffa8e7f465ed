"""Loops that go on where they were: what is done is skipped, and what the loop had is put back.

A checkpoint is taken where the body of a loop begins. It holds, for each loop around that place, how many items were
done, what `carried` was given, and the random numbers at the body's begin; and the states of all objects. To go on, the
script runs anew up to there: the body of the outer loop is begun once more with the random numbers that it began with,
so that the inner loop has the same items, and those that were done are passed over. Then all states are put back.
"""

from __future__ import annotations

import copy
import hashlib
import multiprocessing
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import sampler as samplers

from ..agreement import random_states
from ..forward import rank_stream
from ..process_group import get_rank, get_world_size
from ..sampler import DistributedSampler, Shuffled
from ..sharding.collectives import gather_objects
from . import file
from .due import Due
from .states import CannotCarry, generators, in_place, put_back, taken

T = TypeVar("T")

_DRAWN = (
    "ddpify: the items of this loop are drawn one after another from the random numbers that the steps use too, so "
    "that a run which goes on could not pass over them: draw them from a generator of their own"
)
_LOOKED_AT = 3  # calls of `carried` in which it is seen whether the values can be carried
_ORDERED = (samplers.SequentialSampler, samplers.RandomSampler, samplers.SubsetRandomSampler, samplers.BatchSampler)
_ORDERED += (samplers.WeightedRandomSampler, DistributedSampler, Shuffled)  # type: ignore[assignment]

_run: _Run | None = None
_loaders: list[weakref.ref[DataLoader[Any]]] = []


class _Loop:
    """A loop that runs. done: items behind it. random: the generators before the item was drawn, and values: what the
    loop carries, as data; None where they were not looked at. back: the values to give back.
    """

    def __init__(self) -> None:
        self.done = 0
        self.random: Any = None
        self.values: Any = None
        self.back: Any = None


class _Run:
    """The training of this process. loops: those that run, the outermost first."""

    def __init__(self, folder: str, due: Due) -> None:
        self.folder, self.due = folder, due
        self.start: Any = None  # the random numbers at the script's begin
        self.before: list[str] = []  # digests of those at each call of restore()
        self.finished: list[dict[str, Any]] = []  # what each training that is over has left
        self.saved: dict[str, Any] | None = None  # the checkpoint to go on from, until that is done
        self.objects: dict[str, Any] | None = None
        self.loops: list[_Loop] = []
        self.is_outer: dict[int, bool] = {}  # by depth: whether loops run inside
        self.carries: dict[int, int] = {}  # by depth: how often `carried` was called
        self.is_due = False
        self.stdout: Any = None
        self.iterated: DataLoader[Any] | None = None
        self.generators: list[Any] = []  # the script's own, and those of its loaders

    def random(self) -> dict[str, Any]:
        return {"common": random_states.read(), "own": [taken(each, "") for each in self.generators]}

    def put_random_back(self, states: dict[str, Any]) -> None:
        random_states.write(states["common"])
        if len(self.generators) != len(states["own"]):
            raise RuntimeError("ddpify: the script makes other random number generators than when it was saved")
        for generator, state in zip(self.generators, states["own"], strict=True):
            put_back(generator, state)

    @property
    def training(self) -> int:
        """The number of the training that runs, or is the next: most scripts have one."""
        return len(self.before) - 1

    @property
    def is_past(self) -> bool:
        """Whether this training was over when the checkpoint was written."""
        return self.saved is not None and self.training < self.saved["training"]

    def begin(self, objects: dict[str, Any]) -> None:
        if len(self.finished) < len(self.before):
            raise RuntimeError("ddpify: another training begins, which --resume has not seen: convert the script again")
        self.before.append(hashlib.sha256(repr(random_states.key()).encode()).hexdigest())
        self.is_outer, self.carries = {}, {}
        self.objects = objects
        loaders = [loader for reference in _loaders if (loader := reference()) is not None]
        holders = [[each.generator, each.dataset, each.sampler, each.batch_sampler] for each in loaders]
        self.generators = list(generators([*objects.values(), *holders]))

    def save(self) -> None:
        """Write a checkpoint of this place, unless it began with less than it takes; a collective."""
        for depth, loop in enumerate(self.loops):
            if loop.random is None or (self.carries.get(depth) and loop.values is None):
                return
        mine = rank_stream.own_states()
        data = {
            "version": 1,
            "world_size": get_world_size(),
            "arguments": sys.argv[1:],
            "start": self.start,
            "before": self.before,
            "training": self.training,
            "finished": self.finished,
            "loops": [(loop.done, loop.random, loop.values) for loop in self.loops],
            "objects": self.states(),
            "rank_streams": gather_objects(mine) if get_world_size() > 1 else [mine],
        }
        file.write(self.folder, data)
        self.due.saved()
        self.is_due = False

    def states(self) -> dict[str, Any]:
        """The states of all objects; a collective."""
        seen: set[int] = set()
        return {name: taken(each, name, seen) for name, each in (self.objects or {}).items()}

    def finish(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """A training is over: keep what it has left, or put that back. A collective."""
        if self.saved is not None and not self.is_past:
            raise RuntimeError(
                "ddpify: the training ends before the place of the checkpoint: its loops are shorter now"
            )
        if self.saved is not None:
            left = self.saved["finished"][self.training]
            self.put_objects_back(left["objects"])
            self.put_random_back(left["random"])
            values = tuple(put_back(value, state) for value, state in zip(values, left["values"], strict=True))
        else:
            states = [_looked_at(value, f"value {at + 1} of carried()", None) for at, value in enumerate(values)]
            left = copy.deepcopy({"objects": self.states(), "random": self.random(), "values": states})
        self.finished.append(left)
        return values

    def put_objects_back(self, states: dict[str, Any]) -> None:
        assert self.objects is not None
        if list(states) != list(self.objects):
            raise RuntimeError(
                f"ddpify: the checkpoint in {self.folder} holds {', '.join(states)}, the script gives restore() "
                f"{', '.join(self.objects)}: remove the folder to begin anew"
            )
        for name, each in self.objects.items():
            in_place(each, states[name])

    def arrive(self) -> None:
        """The place of the checkpoint is reached: from here on all is as it was."""
        assert self.saved is not None
        self.put_objects_back(self.saved["objects"])
        streams = self.saved["rank_streams"]
        rank_stream.put_back(streams[get_rank()] if len(streams) == get_world_size() else {})
        if self.stdout is not None:
            sys.stdout = self.stdout
        self.saved, self.stdout = None, None

    def skip(self, iterator: Iterator[Any], count: int) -> None:
        """Pass over items that are done. What was drawn between them then is not drawn now."""
        before = random_states.key() if count else None
        for _ in range(count):
            if next(iterator, self) is self:
                raise RuntimeError(f"ddpify: a loop ends before item {count}, which the checkpoint is behind")
        if count and random_states.key() != before and not self.has_fixed_order():
            raise RuntimeError(_DRAWN)

    def has_fixed_order(self) -> bool:
        """Whether all items were decided when the loop began: those of a loader with a sampler of torch's own."""
        loader = self.iterated
        if loader is None or isinstance(loader.dataset, IterableDataset):
            return False
        return all(each is None or type(each) in _ORDERED for each in (loader.sampler, loader.batch_sampler))


def resume_from(folder: str, every_seconds: float = 600, every_steps: int | None = None) -> None:
    """Write checkpoints into a folder, and go on from the one that is there; stands behind init_process_group.

    Args:
        folder: where rank 0 writes `checkpoint.pt`, and looks for it at the start.
        every_seconds: of the time between two checkpoints. every_steps: instead of it, the steps between two.
    """
    global _run
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        return  # a spawned DataLoader worker that imports the script again
    _run = run = _Run(os.path.abspath(folder), Due(every_seconds, every_steps))
    run.saved = file.read(run.folder)
    if run.saved is None:
        run.start = random_states.read()
    else:
        run.start = run.saved["start"]
        random_states.write(run.start)


def restore(**objects: Any) -> None:
    """Name what the training changes, after all of it is made and before its loop: models, optimizers, schedulers,
    lists, objects of the script. If the run goes on, they get the states of the checkpoint.

    Raises:
        RuntimeError: it is not known what one of them holds; or the script has come here with other random numbers than
            when it was saved, so that its data may be another.
    """
    run = _run
    if run is None:
        return
    run.begin(objects)
    if run.saved is None:
        for name, each in objects.items():
            _looked_at(each, name, set())
        return
    saved = run.saved
    if saved["world_size"] == get_world_size() and saved["before"][run.training] != run.before[-1]:
        raise RuntimeError(
            f"ddpify: the script comes to its training with other random numbers than the run in {run.folder}, so its "
            "data may be split otherwise: seed it by a constant, or remove the folder to begin anew"
        )
    if not run.is_past:
        run.put_objects_back(saved["objects"])
    if run.stdout is not None:
        return
    at = " / ".join(str(loop[0]) for loop in saved["loops"])
    others = "" if saved["arguments"] == sys.argv[1:] else f"; its arguments were {' '.join(saved['arguments'])}"
    print(f"ddpify: goes on from {run.folder} at {at}{others}", file=sys.stderr, flush=True)
    run.stdout, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  what comes now was printed before


def resumable(iterable: Iterable[T]) -> Iterator[T]:
    """The items of a loop, but for those that are done; checkpoints are written between them.

    Raises:
        RuntimeError: the loop cannot be brought to where it was.
    """
    run = _run
    if run is None or run.objects is None:
        yield from iterable
        return
    depth = len(run.loops)
    if run.is_past or len(run.finished) > run.training:
        if not run.is_past:
            raise RuntimeError("ddpify: another training begins, which --resume has not seen: convert the script again")
        return
    run.is_outer[depth - 1] = True
    loop = _Loop()
    run.loops.append(loop)
    iterator = iter(iterable)
    saved = run.saved["loops"] if run.saved is not None else []
    try:
        if depth < len(saved):
            loop.done, random, loop.back = saved[depth]
            run.skip(iterator, loop.done)
            run.put_random_back(random)
            if depth == len(saved) - 1:
                run.arrive()
        while True:
            del run.loops[depth + 1 :]  # those that an exception has left
            saves = run.saved is None and loop.back is None and run.due.step()
            loop.random = run.random() if saves or run.is_outer.get(depth, True) else None
            loop.values = None
            before = random_states.key() if 0 < loop.done < _LOOKED_AT and run.saved is None else None
            try:
                item = next(iterator)
            except StopIteration:
                return
            if before is not None and random_states.key() != before and not run.has_fixed_order():
                raise RuntimeError(_DRAWN)
            if saves and not run.carries.get(depth):
                if loop.done:  # else it is not known yet whether the body carries anything
                    run.save()
            else:
                run.is_due = saves
            yield item
            loop.done += 1
            run.is_outer.setdefault(depth, False)
    finally:
        del run.loops[depth:]


def carried(*values: Any) -> Any:
    """What the loop has added up so far; stands where its body begins: `best, step = carried(best, step)`.

    After a loop, where another training follows, it stands for what the loop has left.

    Returns:
        The values that it is given, or, where the run goes on, those of the checkpoint; one alone without a tuple.

    Raises:
        RuntimeError: it is not known what one of them holds.
    """
    run = _run
    if run is not None and run.objects is not None and not run.loops:
        values = run.finish(values)
    elif run is not None and run.loops:
        loop, depth = run.loops[-1], len(run.loops) - 1
        run.carries[depth] = called = run.carries.get(depth, 0) + 1
        if loop.back is not None:
            values = tuple(put_back(value, state) for value, state in zip(values, loop.back, strict=True))
            loop.back = None
        is_outer = run.is_outer.get(depth, True)
        if run.is_due or is_outer or called <= _LOOKED_AT:
            states = [_looked_at(value, f"value {at + 1} of carried()", None) for at, value in enumerate(values)]
            loop.values = copy.deepcopy(states) if is_outer else states
        if run.is_due:
            run.save()
    return values[0] if len(values) == 1 else values


def track(loader: DataLoader[Any]) -> None:
    """Note a loader that the script makes, for its generators."""
    if _run is not None:
        if loader.persistent_workers:
            raise RuntimeError(
                "ddpify: workers that persist keep random numbers of their own: persistent_workers=False"
            )
        _loaders.append(weakref.ref(loader))


def iterated(loader: DataLoader[Any]) -> None:
    """Note the loader that is looped over."""
    if _run is not None:
        _run.iterated = loader


def _looked_at(value: Any, name: str, seen: set[int] | None) -> Any:
    try:
        return taken(value, name, seen)
    except CannotCarry as error:
        raise RuntimeError(f"ddpify: {error}, so the run could not be resumed") from None
