"""The training of this process as a checkpoint holds it: its loops, its objects, its random numbers."""

from __future__ import annotations

import copy
import hashlib
import sys
import weakref
from typing import Any

from torch.utils.data import DataLoader

from ..agreement import random_states
from ..forward import rank_stream
from ..process_group import get_rank, get_world_size
from ..sharding.collectives import gather_objects
from . import file, iteration
from .due import Due
from .iteration import Iteration
from .states import CannotCarry, generators, in_place, put_back, taken

VERSION = 3  # of what a checkpoint holds

loaders: list[weakref.ref[DataLoader[Any]]] = []


class Loop:
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


class Run:
    """The training of this process. loops: those that run, the outermost first."""

    def __init__(self, folder: str, due: Due) -> None:
        self.folder, self.due = folder, due
        self.start: Any = None  # the random numbers at the script's begin
        self.before: list[str] = []  # digests of those at each call of restore()
        self.began: list[list[Any]] = []  # the states of the values that each call of restore() was given
        self.finished: list[dict[str, Any]] = []  # what each training that is over has left
        self.saved: dict[str, Any] | None = None  # the checkpoint to go on from, until that is done
        self.objects: dict[str, Any] | None = None
        self.loops: list[Loop] = []
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
        known = [loader for reference in loaders if (loader := reference()) is not None]
        holders = [[each.generator, each.dataset, each.sampler, each.batch_sampler] for each in known]
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
            "version": VERSION,
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
            states = [read_state(value, f"value {at + 1} of carried()", None) for at, value in enumerate(values)]
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

    def begin_loop(self, loop: Loop) -> int:
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


def read_state(value: Any, name: str, seen: set[int] | None) -> Any:
    """What `taken` returns. Raises RuntimeError where that is not known."""
    try:
        return taken(value, name, seen)
    except CannotCarry as error:
        raise RuntimeError(f"ddpify: {error}, so the run could not be resumed") from None
