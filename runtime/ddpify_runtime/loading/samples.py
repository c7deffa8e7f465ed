"""Loads the samples of one batch, in the loader's process or in a worker, and watches what that does.

Loading a part of a batch is exact when a sample does not depend on what was loaded before it, or on its batch. So the
first batch is loaded whole on every rank, and looked at: what the data set holds must not change, and the batch must be
made of its parts. Every batch after it is watched too, for what begins later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from typing import Any

from torch.utils.data import Dataset, Subset, default_collate, get_worker_info

from ..forward import region
from ..torch_internals import pin_memory
from . import collated, held_state, streams, tensor_rows
from .collated import Form
from .held_state import Reached, Snapshot
from .none_samples import asks_for_none
from .watch import Look, Watch

ORIGINAL = "loading draws random numbers, and DDPIFY_RANDOM=original asks for those of one process"
_BATCHES = "its __getitems__ draws random numbers for whole batches, or gives no list of samples"
_COLLATE = "its collate function draws random numbers"
_ON_DEVICE = "loading draws random numbers on the GPU"
_AGAIN = "a sample that is loaded again is another one"
_COPY = "its samples cannot be copied, to collate parts of a batch beside the whole"
_LEAVES_OUT = "its collate function leaves out samples that are None, so that ranks may have unequally many"
_FORM = "its batches hold something that does not have one row for each sample, or rows that depend on the others"


class Request(list[Any]):
    """The indices of samples to load.

    places: of these samples in the epoch. total: how many samples the whole batch has. part: whether these are those
    of a rank. parts: into how many the batch shall be divided from now on, if it can be; 0 where this is not asked.
    stream: the seed of the pass; None where samples draw from the common random numbers, as in one process.
    """

    def __init__(
        self, indices: Sequence[Any], places: range, total: int, part: bool, parts: int, stream: int | None
    ) -> None:
        super().__init__(indices)
        self.places, self.total, self.part, self.parts, self.stream = places, total, part, parts, stream

    def message(self) -> list[Any]:
        """The same for a worker, whose queue takes longer for objects of a class than for those of Python."""
        places = self.places
        return [[*self], (places.start, places.stop, places.step), self.total, self.part, self.parts, self.stream]

    @classmethod
    def received(cls, message: list[Any]) -> Request:
        """The request of such a message."""
        indices, places, *others = message
        return cls(indices, range(*places), *others)


@dataclass
class Loaded:
    """A batch, or a rank's part of one.

    rows: how many samples it has. total: how many the whole has; 0 if this is the whole. asked: whether it was to be
    found out if batches can be loaded in parts. form: how it is made of parts. reason: why they cannot; "" if they can.
    drawn: the generators that samples are made with, where a process has learnt that just now, for later workers.
    indices: of the samples, where it was asked.
    """

    batch: Any
    rows: int
    total: int
    asked: bool
    form: Form
    reason: str
    drawn: frozenset[str] | None = None
    indices: Sequence[Any] = ()

    @property
    def says_more(self) -> bool:
        """Whether there is more to know than the batch."""
        return self.asked or bool(self.reason) or self.drawn is not None or not self.total

    def pin_memory(self) -> Loaded:
        self.batch = pin_memory(self.batch)
        return self


class Samples(Dataset[Any]):
    """Stands before a data set and its collate function; gives a Loaded for a Request."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any]) -> None:
        self.dataset, self.collate = dataset, collate
        self.by_batches = _gives_batches(dataset)
        self.in_worker = False  # where nothing but loading can change what the data set holds
        self.held: Reached | None = None
        self.watch: Watch | None = None
        self.of_pass: int | None = None
        self.drawn: set[str] | None = None  # learnt: the generators that samples are made with
        self.steady = False  # learnt: loading a sample changes nothing that a sample depends on
        self.changed_between = False  # learnt: the script changes what the data set holds between two batches

    def __getitems__(self, message: list[Any]) -> Loaded | tuple[Any, int, int]:
        loaded = self.load(Request.received(message))
        return loaded if loaded.says_more else (loaded.batch, loaded.rows, loaded.total)

    def load(self, request: Request) -> Loaded:
        """What is asked for."""
        if request.part and self.collate is default_collate:
            rows = tensor_rows.batch_of(self.dataset, request)
            if rows is not None:
                return Loaded(rows, len(request), request.total, False, None, "")
        known = None if self.drawn is None else {*self.drawn}
        before = region.load_alone(request.part)
        try:
            loaded = self._part(request) if request.part else self._whole(request)
        finally:
            region.load_alone(before)
        if self.drawn != known and self.drawn is not None:
            loaded.drawn = frozenset(self.drawn)
        return loaded

    def _part(self, request: Request) -> Loaded:
        """A rank's part of a batch; its reason is an error."""
        first, reason = self._reach(request)
        assert self.watch is not None
        last = None if self.changed_between else self.watch.last
        before = last or self.watch.look()
        samples, reason = self._rest(request, first, reason)
        marks = None if self.collate is default_collate else streams.marks()
        batch = self.collate(samples)
        if marks is not None and streams.moved(marks) and not reason:
            reason = _COLLATE
        if self.watch.differs(before) and not reason:
            name, _ = self._changed(before)
            if name and last and not self.in_worker:  # or the script has, since the last batch: load it once more
                self.changed_between = True
                return self._part(request)
            reason = f"loading a sample changes {name}" if name else ""
        return Loaded(batch, len(samples), request.total, False, None, reason)

    def _whole(self, request: Request) -> Loaded:
        """A whole batch, looked at where it was asked whether it can be loaded in parts."""
        if not request.parts:
            samples, reason = self._rest(request, [], "")
            return self._collated(request, samples, reason)
        first, reason = self._reach(request)
        before = self._look()
        samples, reason = self._rest(request, first, reason)
        if not reason:
            reason = self._change(request, samples, before)
            self.steady = not reason
        return self._collated(request, samples, reason)

    def _reach(self, request: Request) -> tuple[list[Any], str]:
        """Find what the data set holds, at the first batch of a pass; what was loaded before, as `_load`."""
        first: list[Any] = []
        reason = ""
        if self.held is None and not self.by_batches:  # the first sample of a process may open a file
            first, reason = self._load(request[:1], request.places[:1], request)
        known = self.held is not None and self.of_pass == request.stream  # the script may have changed it since
        if request.part:
            if self.watch is None or not (known or self.watch.is_as_made()):
                self.held = held_state.reached(self.dataset, self.collate)
                self.watch = Watch(self.held)
            elif not known:
                self.watch.last = None
        elif not known:
            self.held, self.watch = held_state.reached(self.dataset, self.collate), None
        self.of_pass = request.stream
        return first, reason

    def _rest(self, request: Request, first: list[Any], reason: str) -> tuple[Any, str]:
        """The samples behind the first ones, as `_load`."""
        if self.by_batches:
            return self._load_at_once(request)
        if not first:
            return self._load(request, request.places, request)
        more, why = self._load(request[len(first) :], request.places[len(first) :], request)
        return first + more, reason or why

    def _load(self, indices: list[Any], places: range, request: Request) -> tuple[list[Any], str]:
        """The samples, and why they cannot be loaded in parts, as far as random numbers tell."""
        watched = request.part or request.parts > 0
        if request.stream is None:
            marks = streams.marks() if watched else None
            samples = [self.dataset[index] for index in indices]
            return samples, ORIGINAL if marks and streams.moved(marks) else ""
        if not watched and not self.steady:  # nothing may be loaded twice
            with streams.kept():
                return self._load_seeded(indices, places, request.stream, streams.HOST), ""
        if self.drawn is None or request.parts:
            with streams.kept():
                return self._load_and_learn(indices, places, request.stream)
        marks = streams.marks(self.drawn)
        try:
            samples = self._load_seeded(indices, places, request.stream, self.drawn)
            late = streams.moved(marks, self.drawn)
        finally:
            streams.restore(marks, self.drawn)
        if late:  # it draws now and then: once more, under all streams
            streams.restore(marks, late)
            with streams.kept():
                return self._load_and_learn(indices, places, request.stream)
        return samples, ""

    def _load_seeded(self, indices: list[Any], places: range, stream: int, names: Collection[str]) -> list[Any]:
        dataset = self.dataset
        if not names:
            return [dataset[index] for index in indices]
        samples, seed = [], streams.seeding(frozenset(names), stream)
        for index, place in zip(indices, places, strict=True):
            seed(place)
            samples.append(dataset[index])
        return samples

    def _load_and_learn(self, indices: list[Any], places: range, stream: int) -> tuple[list[Any], str]:
        samples, drawn, seed = [], self.drawn or set(), streams.seeding(streams.HOST, stream)
        for index, place in zip(indices, places, strict=True):
            seed(place)
            marks = streams.marks()
            samples.append(self.dataset[index])
            drawn |= streams.moved(marks)
        self.drawn = drawn
        return samples, _ON_DEVICE if "device" in drawn else ""

    def _load_at_once(self, request: Request) -> tuple[Any, str]:
        if request.stream is None:
            marks = streams.marks()
            samples = self.dataset.__getitems__(list(request))
            return samples, ORIGINAL if streams.moved(marks) else ""
        if request.part:  # whoever draws is not loaded in parts
            marks = streams.marks()
            samples = self.dataset.__getitems__(list(request))
            return samples, _BATCHES if streams.moved(marks) or not isinstance(samples, list) else ""
        with streams.kept():
            streams.seeding(streams.HOST, request.stream)(request.places.start)
            marks = streams.marks()
            samples = self.dataset.__getitems__(list(request))
            return samples, _BATCHES if streams.moved(marks) or not isinstance(samples, list) else ""

    def _look(self) -> Snapshot:
        assert self.held is not None
        return held_state.snapshot(self.held, deep=True)

    def _changed(self, before: Look | Snapshot) -> tuple[str, bool]:
        """What has changed since the last look, as `held_state.changed`."""
        assert self.held is not None
        if not isinstance(before, Look):
            return held_state.changed(self.held, before, self._look())
        assert self.watch is not None
        after = held_state.snapshot(self.held, deep=False)
        return held_state.changed(self.held, self.watch.snapshot(before), after)

    def _change(self, request: Request, samples: list[Any], before: Snapshot) -> str:
        """Why samples depend on what was loaded before them; "" if they do not."""
        assert self.held is not None
        name, filled = self._changed(before)
        if name:
            return f"loading a sample changes {name}"
        if name := held_state.iterator(self.held):
            return f"samples may come from an iterator ({name})"
        if filled and not self.by_batches:
            after = self._look()
            again, _ = self._load(request[:1], request.places[:1], request)
            name, filled = self._changed(after)
            if name or filled or not collated.equal(samples[0], again[0]):
                held_state.put_back(self.held, after)
                return _AGAIN
        return ""

    def _collated(self, request: Request, samples: Any, reason: str) -> Loaded:
        """A whole batch."""
        own = self.collate is not default_collate
        rows, form = len(samples), None
        copies, parts = samples, request.parts if not reason else 0
        if own and parts:
            try:
                copies = deepcopy(samples)  # a collate function may pad or sort in place
            except Exception:  # noqa: BLE001  whatever cannot be copied
                reason, parts = _COPY, 0
        before = self._look() if own and parts else None
        with streams.kept() if own and request.stream is not None else nullcontext():
            if own and request.stream is not None:
                streams.seeding(streams.HOST, ~request.stream)(request.places.start)
            marks = streams.marks() if own else None
            batch = self.collate(samples)
            drew = marks is not None and bool(streams.moved(marks))
        if before is not None and not reason:
            name, _ = self._changed(before)
            reason = _COLLATE if drew else f"its collate function changes {name}" if name else ""
            if not reason and asks_for_none(self.collate):
                assert self.held is not None
                reason = _LEAVES_OUT if self._leaves_out(copies) else ""
                held_state.put_back(self.held, before)  # it may count what it leaves out
        if parts and not reason:
            form = self._form(batch, copies, parts)
            reason = "" if form is not None else _FORM
        return Loaded(batch, rows, 0, request.parts > 0, form, reason, indices=[*request] if request.parts else ())

    def _leaves_out(self, samples: list[Any]) -> bool:
        """Whether the collate function makes of a sample and an empty one what it makes of the sample alone."""
        given = next((sample for sample in samples if sample is not None), None)
        for empty in (None, _emptied(given)):
            try:
                # It may say what it leaves out, or draw another sample in its place.
                with streams.kept(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    both, one = (self.collate(deepcopy(each)) for each in ([given, empty], [given]))
                if collated.equal(both, one):
                    return True
            except (Exception, SystemExit):  # noqa: BLE001  whatever a collate function raises for what is no sample
                continue
        return False

    def _form(self, batch: Any, samples: list[Any], parts: int) -> Form:
        """How a batch is made of parts; None if it is not."""
        own = self.collate is not default_collate
        try:
            # Where samples are padded to the longest, halves of a batch may be of one size by chance, all pairs hardly.
            pairs = deepcopy(samples) if own else []
            few = len(samples) // 2
            form = collated.form(batch, [self.collate(samples[rank::parts]) for rank in range(parts)])
            if own and form is not None and few > parts:
                form = collated.merged(
                    form, collated.form(batch, [self.collate(pairs[first::few]) for first in range(few)])
                )
        except Exception:  # noqa: BLE001  whatever a collate function raises for a few samples
            return None
        if own:
            return form
        return None if collated.padded_sizes(form) else collated.without_sizes(form)  # as it was taught to; one batch


def _emptied(sample: Any) -> Any:
    """A sample of which each part is None."""
    if isinstance(sample, dict):
        return dict.fromkeys(sample)
    return type(sample)([None] * len(sample)) if type(sample) in (list, tuple) else None


def _gives_batches(dataset: Any) -> bool:
    """Whether a data set has its own way of loading several samples (that of a Subset is its data set's)."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return callable(getattr(dataset, "__getitems__", None))


class StartWorker:
    """Lets a worker see the script's own data set, then runs its worker_init_fn."""

    def __init__(self, function: Callable[[int], None] | None) -> None:
        self.function = function

    def __call__(self, worker: int) -> None:
        info: Any = get_worker_info()
        info.dataset.in_worker = True
        object.__setattr__(info, "dataset", info.dataset.dataset)  # it refuses to be assigned to
        if self.function is not None:
            self.function(worker)
