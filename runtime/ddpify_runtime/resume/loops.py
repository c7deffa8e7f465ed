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

from torch.utils.data import DataLoader

from ..agreement import random_states
from ..forward import rank_stream
from ..process_group import get_rank, get_world_size
from ..sharding.collectives import gather_objects
from . import file, iteration
from .due import Due
from .iteration import Iteration
from .states import CannotCarry, generators, in_place, put_back, taken

T = TypeVar("T")

_VERSION = 2  # of what a checkpoint holds
_LOOKED_AT = 3  # calls of `carried` in which it is seen whether the values can be carried

_run: _Run | None = None
_loaders: list[weakref.ref[DataLoader[Any]]] = []


class _Loop:
    """A loop that runs. items: its own; None for a `while`. done: rounds behind it. random: the generators before the
    item was drawn, or behind the test, and values: what the loop carries, as data; None where they were not looked at.
    back: the values to give back.
    """

    def __init__(self, items: Iteration[Any] | None = None) -> None:
        self.items = items
        self.done = 0
        self.random: Any = None
        self.values: Any = None
        self.back: Any = None

    def saved(self) -> tuple[Any, ...]:
        return self.done, self.random, self.values, None if self.items is None else self.items.behind(self.done)


class _Run:
    """The training of this process. loops: those that run, the outermost first."""

    def __init__(self, folder: str, due: Due) -> None:
        self.folder, self.due = folder, due
        self.start: Any = None  # the random numbers at the script's begin
        self.before: list[str] = []  # digests of those at each call of restore()
        self.began: list[list[Any]] = []  # the states of the values that each call of restore() was given
        self.finished: list[dict[str, Any]] = []  # what each training that is over has left
        self.saved: dict[str, Any] | None = None  # the checkpoint to go on from, until that is done
        self.objects: dict[str, Any] | None = None
        self.loops: list[_Loop] = []
        self.is_outer: dict[int, bool] = {}  # by depth: whether loops run inside
        self.carries: dict[int, int] = {}  # by depth: how often `carried` was called
        self.is_due = False
        self.stdout: Any = None
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
        self.loops.clear()  # a `while` that was left by a break
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
        mine, objects = rank_stream.own_states(), self.states()
        for each in iteration.counted:
            each.is_lost = each.taken > 0 and not each.is_kept
        data = {
            "version": _VERSION,
            "world_size": get_world_size(),
            "arguments": sys.argv[1:],
            "start": self.start,
            "before": self.before,
            "began": self.began,
            "training": self.training,
            "finished": self.finished,
            "loops": [loop.saved() for loop in self.loops],
            "objects": objects,
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

    def put_objects_back(self, states: dict[str, Any], iterations: bool = True) -> None:
        assert self.objects is not None
        if list(states) != list(self.objects):
            raise RuntimeError(
                f"ddpify: the checkpoint in {self.folder} holds {', '.join(states)}, the script gives restore() "
                f"{', '.join(self.objects)}: remove the folder to begin anew"
            )
        for name, each in self.objects.items():
            if iterations or not isinstance(each, Iteration):
                in_place(each, states[name])

    def begin_loop(self, loop: _Loop) -> int:
        """A loop begins: bring it to where it was, if the run goes on in it.

        Returns:
            How many loops are around it.
        """
        depth = len(self.loops)
        self.is_outer[depth - 1] = True
        self.loops.append(loop)
        if self.saved is not None and depth < len(self.saved["loops"]):
            loop.done, random, loop.back, items = self.saved["loops"][depth]
            if loop.items is not None:
                loop.items.load_state_dict(items)
            if depth == len(self.saved["loops"]) - 1:
                self.arrive()
            self.put_random_back(random)
        return depth

    def begin_round(self, depth: int) -> bool:
        """A round of a loop begins: whether a checkpoint is due in it."""
        loop = self.loops[depth]
        del self.loops[depth + 1 :]  # those that a break or an exception has left
        saves = self.saved is None and loop.back is None and self.due.step()
        loop.random = self.random() if saves or self.is_outer.get(depth, True) else None
        loop.values = None
        return saves

    def save_if(self, is_due: bool, depth: int) -> None:
        """Write a checkpoint here, or where the body has given what it carries."""
        if not is_due or self.carries.get(depth):
            self.is_due = is_due
        elif self.loops[depth].done:  # else it is not known yet whether the body carries anything
            self.save()

    def arrive(self) -> None:
        """The place of the checkpoint is reached: from here on all is as it was."""
        assert self.saved is not None
        self.put_objects_back(self.saved["objects"])
        streams = self.saved["rank_streams"]
        rank_stream.put_back(streams[get_rank()] if len(streams) == get_world_size() else {})
        if self.stdout is not None:
            sys.stdout = self.stdout
        self.saved, self.stdout = None, None

    @property
    def ignores_loops(self) -> bool:
        """Whether this training is over: its loops have nothing to do.

        Raises:
            RuntimeError: it is another one, which conversion has not seen.
        """
        if len(self.finished) > self.training and not self.is_past:
            raise RuntimeError("ddpify: another training begins, which --resume has not seen: convert the script again")
        return self.is_past


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
    elif run.saved["version"] != _VERSION:
        raise RuntimeError(f"ddpify: the checkpoint in {run.folder} is of another version: remove it to begin anew")
    else:
        run.start = run.saved["start"]
        random_states.write(run.start)


def restore(*values: Any, **objects: Any) -> Any:
    """Name what the training changes, after all of it is made and before its loop: models, optimizers, schedulers,
    lists, objects of the script. If the run goes on, they get the states of the checkpoint.

    Args:
        values: those that a checkpoint of the script's own may have decided, such as the epoch to begin with.

    Returns:
        The values with which the run began; one alone without a tuple.

    Raises:
        RuntimeError: it is not known what one of them holds; or the script has come here with other random numbers than
            when it was saved, so that its data may be another.
    """
    run = _run
    if run is not None:
        values = _restored(run, values, objects)
    return values[0] if len(values) == 1 else values


def _restored(run: _Run, values: tuple[Any, ...], objects: dict[str, Any]) -> tuple[Any, ...]:
    run.begin(objects)
    if run.saved is None:
        for name, each in objects.items():
            _looked_at(each, name, set())
        run.began.append([_looked_at(value, f"value {at + 1} of restore()", None) for at, value in enumerate(values)])
        return values
    run.began.append(run.saved["began"][run.training])
    values = tuple(put_back(value, state) for value, state in zip(values, run.began[-1], strict=True))
    saved = run.saved
    if saved["world_size"] == get_world_size() and saved["before"][run.training] != run.before[-1]:
        raise RuntimeError(
            f"ddpify: the script comes to its training with other random numbers than the run in {run.folder}, so its "
            "data may be split otherwise: seed it by a constant, or remove the folder to begin anew"
        )
    if not run.is_past:
        run.put_objects_back(saved["objects"], iterations=False)
    if run.stdout is not None:
        return values
    at = " / ".join(str(loop[0]) for loop in saved["loops"])
    others = "" if saved["arguments"] == sys.argv[1:] else f"; its arguments were {' '.join(saved['arguments'])}"
    print(f"ddpify: goes on from {run.folder} at {at}{others}", file=sys.stderr, flush=True)
    run.stdout, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  what comes now was printed before
    return values


def resumable(iterable: Iterable[T]) -> Iterator[T]:
    """The items of a loop, but for those that are done; checkpoints are written between them.

    Raises:
        RuntimeError: the loop cannot be brought to where it was.
    """
    run = _run
    if run is None or run.objects is None:
        yield from iterable
        return
    if run.ignores_loops:
        return
    loop = _Loop(Iteration(iterable))
    assert loop.items is not None
    items = iter(loop.items)
    depth = run.begin_loop(loop)
    try:
        while True:
            is_due = run.begin_round(depth)
            try:
                item = next(items)
            except StopIteration:
                return
            run.save_if(is_due, depth)
            yield item
            loop.done += 1
            run.is_outer.setdefault(depth, False)
    finally:
        del run.loops[depth:]


def goes_on(test: Any) -> bool:
    """Whether a `while` loop has another round: `while goes_on(step < steps)`; as `resumable` for other loops.

    Args:
        test: of the loop. Of the `while` loops around one place, one alone may be given here.

    Raises:
        RuntimeError: the loop has no round where it was in one.
    """
    run = _run
    if run is None or run.objects is None:
        return bool(test)
    if run.ignores_loops:
        return False
    depth = next((at for at, loop in enumerate(run.loops) if loop.items is None), len(run.loops))
    if depth < len(run.loops):
        run.loops[depth].done += 1
        run.is_outer.setdefault(depth, False)
    elif run.saved is not None and not test:
        raise RuntimeError(f"ddpify: a `while` loop is not begun now, in which the run in {run.folder} was")
    else:
        run.begin_loop(_Loop())
    if not test:
        del run.loops[depth:]
        return False
    run.save_if(run.begin_round(depth), depth)
    return True


def counted(iterable: Iterable[T]) -> Iteration[T] | Iterable[T]:
    """What the script takes items of by itself: `batches = iter(counted(loader))`, then `next(batches)`.

    Returns:
        The same items; it can be begun once.
    """
    if _run is None:
        return iterable
    made = Iteration(iterable)
    iteration.counted.add(made)
    return made


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
            random = run.random()
            values = tuple(put_back(value, state) for value, state in zip(values, loop.back, strict=True))
            run.put_random_back(random)  # an iteration that was made anew has drawn
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
        iteration.began(loader)


def _looked_at(value: Any, name: str, seen: set[int] | None) -> Any:
    try:
        return taken(value, name, seen)
    except CannotCarry as error:
        raise RuntimeError(f"ddpify: {error}, so the run could not be resumed") from None
