"""An iteration that can be brought to where it was: made anew, with the items that it gave passed over.

A loader decides its order where a pass over it begins, from the random numbers there. These are noted for each pass, so
that a generator that goes over a loader again and again finds the orders that it had.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import sampler as samplers

from ..agreement import random_states
from ..sampler import InOrder, Shuffled
from ..torch_internals import LoaderIterator, draw_without_loading
from .states import generators, put_back, taken

T_co = TypeVar("T_co", covariant=True)

_DRAWN = (
    "ddpify: the items of this loop are drawn one after another from the random numbers that the steps use too, so "
    "that a run which goes on could not pass over them: draw them from a generator of their own"
)
_LOST = "ddpify: next() takes items of an iterator that restore() and carried() are not given: loop over it with `for`"
_LOOKED_AT = 3  # items at which it is seen whether they are drawn at random
_ORDERED = (samplers.SequentialSampler, samplers.RandomSampler, samplers.SubsetRandomSampler, samplers.BatchSampler)
_ORDERED += (samplers.WeightedRandomSampler, Shuffled, InOrder)  # type: ignore[assignment]

_active: list[Iteration[Any]] = []  # those of which an item is drawn now, the innermost last
_latest: weakref.ref[DataLoader[Any]] | None = None  # the loader over which a pass began last
counted: weakref.WeakSet[Iteration[Any]] = weakref.WeakSet()  # those that the script takes items of itself


class Iteration(Generic[T_co]):
    """The items of an iterable, counted.

    taken: how many were given. passes: of how many items each pass over a loader was behind when it began or gave its
    first one, and the random numbers then. is_kept: whether a checkpoint holds it. is_lost: whether one was
    written without it.
    """

    def __init__(self, iterable: Iterable[T_co]) -> None:
        self.iterable = iterable
        self.iterator: Iterator[T_co] | None = None
        self.taken = 0
        self.passes: list[tuple[int, Any]] = []
        self.is_kept = self.is_lost = False
        self._loader: DataLoader[Any] | None = None
        self._before = _latest() if _latest is not None and isinstance(iterable, Iterator) else None
        self._noted: list[tuple[int, Any]] = []  # the passes as they were, while it is brought there

    def __iter__(self) -> Iteration[T_co]:
        if self.iterator is None:
            _active.append(self)
            try:
                self.iterator = iter(self.iterable)
            finally:
                _active.pop()
        return self

    def __next__(self) -> T_co:
        if self.is_lost:
            raise RuntimeError(_LOST)
        iterator = self.iterator or iter(self).iterator
        assert iterator is not None
        looks = 0 < self.taken < _LOOKED_AT and not self._noted
        before, passes = random_states.key() if looks else None, len(self.passes)
        _active.append(self)
        try:
            if not self.taken:
                self._note()
            item = next(iterator)
        finally:
            _active.pop()
        if looks and passes == len(self.passes) and random_states.key() != before and not self._has_fixed_order():
            raise RuntimeError(_DRAWN)
        self.taken += 1
        return item

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        self.is_kept = True
        return self.behind(self.taken)

    def behind(self, taken: int) -> dict[str, Any]:
        """Where it was behind so many items; is_without_state: whether they need not be loaded to get there."""
        is_without_state = getattr(self._loader or self._before, "is_without_state", False)
        passes = [each for each in self.passes if each[0] < taken or taken == self.taken]
        return {"taken": taken, "passes": passes, "is_without_state": is_without_state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where it was; the random numbers are elsewhere then.

        Raises:
            RuntimeError: it cannot be brought there.
        """
        self.is_kept = True
        noted = [digest for _, (digest, *_) in state["passes"]]
        mine = [digest for _, (digest, *_) in self.passes]
        if state["taken"] < self.taken or noted[: len(mine)] != mine:
            if self.iterator is self.iterable:
                raise RuntimeError("ddpify: an iterator that is given items of before cannot be begun again")
            self.iterator, self.taken, self.passes = None, 0, []
        self._noted = state["passes"]
        try:
            if state["is_without_state"] and state["taken"] > self.taken:
                self._draw(state["taken"])
            while self.taken < state["taken"]:
                within, passes = random_states.key(), len(self.passes)
                next(self)
                if passes == len(self.passes) and random_states.key() != within and not self._has_fixed_order():
                    raise RuntimeError(_DRAWN)
        except StopIteration:
            text = f"ddpify: a loop ends before item {state['taken']}, which the checkpoint is behind"
            raise RuntimeError(text) from None
        self._noted = []

    def _draw(self, taken: int) -> None:
        """Come as near to where so many items were given as can be without loading any."""
        iterator: Any = iter(self).iterator
        counts: Any = iterator.__reduce__()[1] if type(iterator) is enumerate else None  # what it goes over, the count
        batches = counts[0] if counts else iterator
        of_torch = isinstance(batches, LoaderIterator)
        if not of_torch and not hasattr(batches, "skip"):
            return
        if not self.taken:
            self._note()
        count = taken - self.taken
        drawn = count - (draw_without_loading(batches, count) if of_torch else batches.skip(count))
        if counts:
            iterator = enumerate(batches, counts[1] + drawn)
            self.iterator = iterator
        self.taken += drawn

    def began(self, loader: DataLoader[Any]) -> None:
        """A pass over a loader begins within."""
        self._loader = loader
        self._note()

    def _note(self) -> None:
        """Note the random numbers of this place, or put back those that it had."""
        own = list(generators(_holders(self._loader)))
        if len(self.passes) < len(self._noted):
            _, common, states = self._noted[len(self.passes)][1]
            random_states.write(common)
            for generator, state in zip(own, states, strict=True):
                put_back(generator, state)
        states = [taken(each, "") for each in own]
        digest = hashlib.sha256(repr((random_states.key(), states)).encode()).hexdigest()
        self.passes.append((self.taken, (digest, random_states.read(), states)))

    def _has_fixed_order(self) -> bool:
        """Whether all items were decided when a pass began: those of a loader with a sampler of torch's own."""
        loader = self._loader or self._before
        if loader is None or isinstance(loader.dataset, IterableDataset):
            return False
        return all(each is None or type(each) in _ORDERED for each in (loader.sampler, loader.batch_sampler))


def began(loader: DataLoader[Any]) -> None:
    """Note that a pass over a loader begins."""
    global _latest
    _latest = weakref.ref(loader)
    if _active:
        _active[-1].began(loader)


def _holders(loader: DataLoader[Any] | None) -> list[Any]:
    return [] if loader is None else [loader.generator, loader.sampler, loader.batch_sampler]
