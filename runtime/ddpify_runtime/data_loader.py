"""DataLoader: torch's own, of which every rank loads its rows only, where that cannot be noticed.

Every rank draws the same global batches. The first of them are loaded whole, to see whether a rank may load its rows
alone (loading/samples.py); what does not allow that is loaded whole on every rank, which is exact too, but not faster
(HAZARDS D9, D20, S3, section 0.3). What is drawn at random while a sample is loaded comes from a stream of the sample's
own (loading/streams.py), or with DDPIFY_RANDOM=original from those of one process, for which all has to be loaded.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence, Sized
from contextlib import suppress
from itertools import count
from operator import index
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset, Sampler, default_collate

from . import engines, report, sampler
from .agreement import check, failure
from .agreement.random_states import bytes_of, kept
from .forward import region
from .launch import environment
from .lazy.batch import DistributedTensor, wholes
from .lazy.entries import Entries
from .lazy.labels import MOST, Labels
from .loading import collated, held_state, tensor_rows
from .loading.collated import Form
from .loading.held_state import INTO
from .loading.samples import Loaded, Request, Samples, StartWorker
from .process_group import get_world_size
from .resume import loops
from .sampler import Shuffled
from .sharding import structure
from .sharding.collectives import extreme_over_ranks, gather_objects, spread
from .torch_internals import draw_without_loading, indices_of, loaded_as_in_one_process, pins
from .trial.equal_ranks import require_equal_inputs

T_co = TypeVar("T_co", covariant=True)

# How many batches are loaded whole before it is believed that they are made of parts. A collate function of the
# script's own may pad to the longest sample, which is not seen where all are of one size by chance.
_FIRST, _FIRST_OF_OWN = 1, 4

_STREAM = "it is an IterableDataset, of which a part cannot be had without reading the rest"
_ANOTHER = "its collate function makes batches of another form or size each time"
_IN_A_THREAD = "its batches are padded or hold lists, and are read in a thread, where the ranks cannot meet"
_NO_BATCHES = "its loader has no batch size, so that the data set makes the batches"


class DataLoader(TorchDataLoader[T_co]):
    """torch.utils.data.DataLoader: same arguments, same batches, same length; for classes derived from it, too."""

    _ddpify: _Parts | None = None  # one attribute, which no class that a script derives from this one has by chance

    if not TYPE_CHECKING:  # torch's own signature

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if isinstance(self.sampler, Shuffled) and self.sampler.generator is None:
                self.sampler.generator = self.generator  # as torch's does for the RandomSampler that it makes
            loops.track(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which load by themselves."""
        return {name: value for name, value in vars(self).items() if name != "_ddpify"}

    @property
    def is_without_state(self) -> bool:
        """Whether it is known that no batch depends on those that were loaded before it."""
        is_divided = self._ddpify is not None and self._ddpify.divided
        return is_divided or (tensor_rows.are_rows(self.dataset) and self.collate_fn is default_collate)

    def __iter__(self) -> Any:
        loops.iterated(self)
        if get_world_size() == 1 or region.alone():
            return engines.here().steps(super().__iter__())
        if self._ddpify is None:
            self._ddpify = _Parts(self)
        return engines.here().steps(self._ddpify.batches())


class _Parts:
    """What a loader has learnt of its batches, and the parts of them that this rank loads.

    reason: why every rank has to load everything. form: how batches are made of parts. padded: how many sizes of a
    batch are those of its longest sample, on whichever rank. meets: whether the ranks put something of each batch
    together. seen: the batches of that form. largest: the batch that was asked for, since the first that is divided may
    be the last of a pass, which is smaller. divided: a part of a batch has been asked for. begun: a pass has begun.
    in_parts: the samples that ranks load in parts, in this pass, where something is learnt from them.

    The loader holds this, and is not held from here: a collection takes a cycle apart in some order of its own, so that
    workers that persist are not told of the end, and torch waits 5 s for each.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = ref(loader)
        self.reason = ""
        self.form: Form = None
        self.padded = 0
        self.meets = False
        self.seen = 0
        self.largest = 0
        self.divided = False
        self.passes = 0
        self.stream: int | None = None
        self.samples: Samples | None = None
        self.inner: TorchDataLoader[Any] | None = None
        self.begun = False
        self.labels: list[Labels] = []
        self.in_parts: set[int] | None = None

    @property
    def loader(self) -> DataLoader[Any]:
        loader = self._loader()
        assert loader is not None, "whoever asks for a batch holds the loader"
        return loader

    def batches(self) -> Any:
        """One pass over the loader."""
        loader = self.loader
        self.gather_what_is_held()
        loader.in_order = True  # the ranks' workers are not equally fast
        if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
            self.load_whole(_STREAM if isinstance(loader.dataset, IterableDataset) else _NO_BATCHES)
            with loaded_as_in_one_process():
                return TorchDataLoader.__iter__(loader)
        _require_equal_states()
        if self.samples is None:
            self.samples = Samples(loader.dataset, loader.collate_fn)
        if self.inner is None or not loader.persistent_workers:
            self.inner = TorchDataLoader(
                self.samples,
                batch_sampler=_Requests(self),
                collate_fn=_as_it_is,
                worker_init_fn=StartWorker(loader.worker_init_fn),
                **{name: getattr(loader, name) for name in _FORWARDED},
            )
            self.passes = 0
        learns = not self.begun or any(labels.learns for labels in self.labels)
        self.begun, self.in_parts = True, set() if learns and self.size() <= MOST else None
        self.stream = None if environment.draws_original() else self.seed()
        batches = iter(self.inner)
        return _Batches(self, batches if loader.num_workers else _LoadedHere(self.samples, batches), batches)

    def gather_what_is_held(self) -> None:
        """Gather what samples are made of, such as the model's own labels: each rank, or its workers, load others."""
        if self.inner is not None and self.loader.persistent_workers:  # they hold what they were started with
            return
        watch = None if self.samples is None else self.samples.watch
        if watch is None or not watch.is_as_made():
            roots = self.loader.dataset, self.loader.collate_fn
            held = [each for each in held_state.reached(*roots).held if each.size <= INTO]
            values = [value for each in held for value in each.values().values()]
            wholes([value for value in values if isinstance(value, (DistributedTensor, Entries))])

    def seed(self) -> int:
        """The seed of this pass: what torch is about to draw for it (for workers that persist, at their first one)."""
        generator, drawn = (
            self.loader.generator,
            torch.empty((), dtype=torch.int64),
        )  # on the default device, as torch's
        if generator is None:
            with kept():
                seed = int(drawn.random_())
        else:
            before = generator.get_state()
            seed = int(drawn.random_(generator=generator))
            generator.set_state(before)
        self.passes += 1
        return (seed + (self.passes - 1) * 0x9E3779B97F4A7C15) % 2**64

    def may_shard(self) -> bool:
        needed = _FIRST if self.loader.collate_fn is default_collate else _FIRST_OF_OWN
        learnt = not self.reason and self.form is not None and self.seen >= needed
        return learnt and (not self.meets or current_thread() is main_thread())

    def learn(self, loaded: Loaded) -> None:
        """From a batch that was loaded whole; labels that differ between ranks would be seen nowhere else."""
        if current_thread() is main_thread() and not region.alone():
            require_equal_inputs(structure.flatten(loaded.batch)[0])
        if self.reason:
            return
        self.see_labels(loaded)
        form = loaded.form if self.form is None else collated.merged(self.form, loaded.form)
        self.form, self.seen = form, self.seen + 1
        if loaded.reason:
            self.load_whole(loaded.reason)
        elif form is None:
            self.load_whole(_ANOTHER)
        elif self.may_shard():
            self.form, self.padded = collated.sided(form), collated.padded_sizes(form)
            self.meets = bool(self.padded) or collated.has_entries(form)
            if self.form is None:
                self.load_whole(_ANOTHER)
            elif self.meets and current_thread() is not main_thread():
                self.load_whole(_IN_A_THREAD)

    def load_whole(self, reason: str) -> None:
        if not self.reason:
            self.require_whole(reason)
            self.reason = reason
            text = f"{self.name()} is loaded whole on every process (exact, but no faster): {reason}"
            report.note(f"{id(self)} loader", text)
            warnings.warn(f"ddpify: {text}", stacklevel=4)

    def see_labels(self, loaded: Loaded) -> None:
        """Those of a batch that was loaded whole need not be seen in parts, too, before it is known that all count."""
        if self.in_parts is not None and loaded.form is not None:
            with suppress(TypeError):  # as where indices are noted
                samples = [*map(index, loaded.indices)]
                for place, numbers in enumerate(collated.tensors(loaded.batch, loaded.form)):
                    self.labels_at(place).loaded_whole(samples, numbers)

    def labels_at(self, place: int) -> Labels:
        if place == len(self.labels):
            self.labels.append(Labels())
        return self.labels[place]

    def each_tensors_labels(self) -> Iterator[Labels]:
        """For each tensor in a batch that is loaded in parts what is known of its labels."""
        for place in count():
            labels = self.labels_at(place)
            labels.batch += 1
            yield labels

    def passed(self) -> None:
        """A pass has ended, to its last batch."""
        for labels in self.labels:
            labels.passed(self.in_parts or set(), self.size())
        self.in_parts = None

    def size(self) -> int:
        dataset = self.loader.dataset
        return len(dataset) if isinstance(dataset, Sized) else -1

    def name(self) -> str:
        """That of the data set's class, for what is said of it."""
        return type(self.loader.dataset).__name__

    def require_whole(self, reason: str) -> None:
        if self.divided:
            raise RuntimeError(
                f"ddpify: {self.name()} was loaded in parts, one by each process, but now {reason}. "
                "The steps since it began may be wrong: import DataLoader from torch.utils.data, not ddpify_runtime"
            )


_FORWARDED = (
    "num_workers",
    "pin_memory",
    "timeout",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
)


def _as_it_is(loaded: Any) -> Any:
    return loaded


class _Requests(Sampler[list[Any]]):
    """What this rank loads of each batch of a loader's batch sampler; held by its parts, and not holding them."""

    tells_whole_batches = True

    def __init__(self, parts: _Parts) -> None:
        self._parts = ref(parts)

    @property
    def parts(self) -> _Parts:
        parts = self._parts()
        assert parts is not None, "whoever asks for a batch holds the loader"
        return parts

    def __len__(self) -> int:
        return len(self.parts.loader)

    def __iter__(self) -> Iterator[list[Any]]:
        requests = self._requests(self.parts.stream)  # of this pass: zip(loader, loader) begins two at once
        return (request.message() for request in requests) if self.parts.loader.num_workers else requests

    def _requests(self, stream: int | None) -> Iterator[Request]:
        place = 0
        for batch in sampler.batches(self.parts.loader.batch_sampler):  # type: ignore[arg-type]
            indices = batch if isinstance(batch, (list, range)) else list(batch)
            check.draw(indices)
            yield self._request(indices, place, stream)
            place += len(indices)

    def _request(self, indices: Sequence[Any], first: int, stream: int | None) -> Request:
        """Of the samples of a batch, the first of which comes at this place of the pass."""
        rank, world_size, parts, total = dist.get_rank(), dist.get_world_size(), self.parts, len(indices)
        places, parts.largest = range(first, first + total), max(total, parts.largest)
        if not (parts.may_shard() and total >= world_size):
            asked = not parts.reason and not parts.divided and total >= world_size
            return Request(indices, places, total, False, world_size if asked else 0, stream)
        if not parts.divided:
            parts.divided = True
            text = f"{parts.name()} is loaded in parts: batches of {parts.largest}"
            text += f", of which each process loads its {parts.largest // world_size}"
            report.note(f"{id(parts)} loader", text, detail=True)
        if parts.in_parts is not None:
            with suppress(TypeError):  # an index of a kind of the data set's own
                parts.in_parts.update(map(index, indices))
        return Request(indices[rank::world_size], places[rank::world_size], total, True, 0, stream)


class _LoadedHere:
    """The batches of a loader without workers; torch's iterator does as much for each as loading a few samples.

    As torch's it goes on behind a batch that could not be loaded, where a generator would be at its end.
    """

    def __init__(self, samples: Samples, batches: Any) -> None:
        self.samples, self.requests, self.pinned = samples, indices_of(batches), pins(batches)

    def __iter__(self) -> _LoadedHere:
        return self

    def __next__(self) -> Loaded:
        request = next(self.requests)
        try:
            loaded = self.samples.load(request)
        except StopIteration as error:  # of `next(…)` in __getitem__: on other ranks the pass would go on
            raise RuntimeError("loading a sample raised StopIteration") from error
        return loaded.pin_memory() if self.pinned else loaded


class _Batches:
    """The batches of one pass. of_torch: torch's iterator, which draws the indices."""

    def __init__(
        self,
        parts: _Parts,
        batches: Iterator[Loaded | tuple[Any, int, int]],
        of_torch: Any,
    ) -> None:
        self.parts, self.loader, self.batches, self.of_torch = parts, parts.loader, batches, of_torch

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        before = region.load(True)  # past a `with`, which costs as much as a small batch
        try:
            loaded = next(self.batches)
        except StopIteration:
            self.parts.passed()
            raise
        except Exception as error:  # whatever the data set raises
            if self.parts.divided:
                part = f"loading a part of a batch of {self.parts.name()}"
                failure.require_everywhere(error, part, "Leave out what cannot be read before the loader is made")
            raise
        finally:
            region.load(before)
        if not isinstance(loaded, Loaded):
            batch, rows, total = loaded
            return self._sharded(batch, rows, total, "")
        if loaded.drawn is not None and self.parts.samples is not None:
            self.parts.samples.drawn = {*loaded.drawn, *(self.parts.samples.drawn or ())}
        if loaded.total:
            return self._sharded(loaded.batch, loaded.rows, loaded.total, loaded.reason)
        if loaded.asked:
            self.parts.learn(loaded)
        return loaded.batch

    def skip(self, count: int) -> int:
        """Draw the indices of the next batches, which are not loaded then; how many of them are to be taken still."""
        return draw_without_loading(self.of_torch, count)

    def _sharded(self, part: Any, rows: int, total: int, reason: str) -> Any:
        """What looks like the whole of a batch. Arguments as for `collated.shared`, and why it could not be divided."""
        parts, batch = self.parts, None
        labels = parts.each_tensors_labels()
        try:
            longest, joined = _agreed(part, parts, rows, total, bool(reason)) if parts.meets else ((), ())
            batch = collated.sharded(part, parts.form, rows, total, labels, iter(longest), iter(joined))
        except ValueError:
            reason = reason or "a batch has another form or size than the first ones"
        if reason:
            parts.require_whole(reason)
        return batch


def _agreed(
    part: Any, parts: _Parts, rows: int, total: int, fails: bool
) -> tuple[Sequence[int], Sequence[Sequence[Any]]]:
    """The lengths of a batch that is padded to its longest sample, and its lists with an entry for each sample.

    A collective: both are put together from those of the ranks' parts.

    Args:
        part: this rank's. rows, total: how many samples it and the batch have. fails: whether this rank will not go on.

    Raises:
        ValueError: this rank will not go on, or its part has another form.
        RuntimeError: another rank will not go on; or the ranks cannot meet here.
    """
    if region.alone() or current_thread() is not main_thread():
        raise RuntimeError("ddpify: the ranks put their parts of this batch together: read it on all, in no thread")
    lengths = [0] * parts.padded
    lists: list[Sequence[Any]] = []
    try:
        lengths = lengths if fails else [*collated.lengths(part, parts.form)]
        lists = lists if fails else [*collated.entries(part, parts.form, rows)]
    except ValueError:
        fails = True
    if collated.has_entries(parts.form):
        sent = gather_objects((fails, lengths, lists))
        failed = any(each for each, _, _ in sent)
        longest = [max(each) for each in zip(*(each for _, each, _ in sent), strict=True)]
    else:
        sent = []
        agreed = torch.tensor([fails, *lengths], device="cpu")
        extreme_over_ranks(agreed, dist.ReduceOp.MAX)
        failed, *longest = agreed.tolist()
    if fails:
        raise ValueError
    if failed:
        raise RuntimeError("ddpify: another process stops at this batch, and says why")
    return longest, [_in_turn(parts, total) for parts in zip(*(each for _, _, each in sent), strict=True)]


def _in_turn(parts: Sequence[Sequence[Any]], total: int) -> list[Any]:
    """The list of all samples, of which each rank has had every so many-th."""
    whole: list[Any] = [None] * total
    for rank, part in enumerate(parts):
        whole[rank :: len(parts)] = part
    return whole


def _require_equal_states() -> None:
    if spread(torch.tensor([zlib.crc32(bytes_of(torch.get_rng_state()))], device="cpu")).any():
        raise RuntimeError(
            "ddpify: the processes' random numbers went apart before this pass over a loader, so they would draw "
            "different batches: a seed of the clock or the system, a search that draws its own settings on each "
            "process, or something that drew random numbers on some ranks only"
        )
