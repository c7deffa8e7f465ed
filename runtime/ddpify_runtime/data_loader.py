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
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
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
    """torch.utils.data.DataLoader: same arguments, same batches, same length."""

    _reason: str = ""  # learnt: why every rank has to load everything
    _form: Form = None  # learnt: how batches are made of parts
    _padded: int = 0  # learnt: how many sizes of a batch are those of its longest sample, on whichever rank
    _meets: bool = False  # learnt: whether the ranks put something of each batch together
    _seen: int = 0  # batches of that form
    _largest: int = 0  # batch that was asked for: the first that is divided may be the last of a pass, which is smaller
    _divided: bool = False  # a part of a batch has been asked for
    _passes: int = 0
    _stream: int | None = None
    _samples: Samples | None = None
    _inner: TorchDataLoader[Any] | None = None
    _labels: list[Labels]
    _in_parts: set[int] | None  # samples that ranks load in parts, in this pass, where something is learnt from them
    learnt: ClassVar[frozenset[str]]  # the names of all these, which are no state of a class derived from this one

    if not TYPE_CHECKING:  # torch's own signature

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if isinstance(self.sampler, Shuffled) and self.sampler.generator is None:
                self.sampler.generator = self.generator  # as torch's does for the RandomSampler that it makes
            loops.track(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which load by themselves."""
        return {name: value for name, value in vars(self).items() if name not in ("_inner", "_samples")}

    @property
    def is_without_state(self) -> bool:
        """Whether it is known that no batch depends on those that were loaded before it."""
        return self._divided or (tensor_rows.are_rows(self.dataset) and self.collate_fn is default_collate)

    def __iter__(self) -> Any:
        loops.iterated(self)
        return engines.here().steps(self._batches())

    def _batches(self) -> Any:
        if get_world_size() == 1 or region.alone():
            return super().__iter__()
        self._gather_what_is_held()
        self.in_order = True  # the ranks' workers are not equally fast
        if isinstance(self.dataset, IterableDataset) or self.batch_sampler is None:
            self._load_whole(_STREAM if isinstance(self.dataset, IterableDataset) else _NO_BATCHES)
            with loaded_as_in_one_process():
                return super().__iter__()
        _require_equal_states()
        if self._samples is None:
            self._samples = Samples(self.dataset, self.collate_fn)
        if self._inner is None or not self.persistent_workers:
            self._inner = TorchDataLoader(
                self._samples,
                batch_sampler=_Requests(self),
                collate_fn=_as_it_is,
                worker_init_fn=StartWorker(self.worker_init_fn),
                **{name: getattr(self, name) for name in _FORWARDED},
            )
            self._passes = 0
        known = vars(self).get("_labels")
        learns = known is None or any(labels.learns for labels in known)
        self._labels, self._in_parts = known or [], set() if learns and self._size() <= MOST else None
        self._stream = None if environment.draws_original() else self._seed()
        batches = iter(self._inner)
        return _Batches(self, batches if self.num_workers else _LoadedHere(self._samples, batches), batches)

    def _gather_what_is_held(self) -> None:
        """Gather what samples are made of, such as the model's own labels: each rank, or its workers, load others."""
        if self._inner is not None and self.persistent_workers:  # they hold what they were started with
            return
        watch = None if self._samples is None else self._samples.watch
        if watch is None or not watch.is_as_made():
            held = [each for each in held_state.reached(self.dataset, self.collate_fn).held if each.size <= INTO]
            values = [value for each in held for value in each.values().values()]
            wholes([value for value in values if isinstance(value, (DistributedTensor, Entries))])

    def _seed(self) -> int:
        """The seed of this pass: what torch is about to draw for it (for workers that persist, at their first one)."""
        drawn = torch.empty((), dtype=torch.int64)  # on the default device, as torch's
        if self.generator is None:
            with kept():
                seed = int(drawn.random_())
        else:
            before = self.generator.get_state()
            seed = int(drawn.random_(generator=self.generator))
            self.generator.set_state(before)
        self._passes += 1
        return (seed + (self._passes - 1) * 0x9E3779B97F4A7C15) % 2**64

    def _may_shard(self) -> bool:
        needed = _FIRST if self.collate_fn is default_collate else _FIRST_OF_OWN
        learnt = not self._reason and self._form is not None and self._seen >= needed
        return learnt and (not self._meets or current_thread() is main_thread())

    def _learn(self, loaded: Loaded) -> None:
        """From a batch that was loaded whole; labels that differ between ranks would be seen nowhere else."""
        if current_thread() is main_thread() and not region.alone():
            require_equal_inputs(structure.flatten(loaded.batch)[0])
        if self._reason:
            return
        self._see_labels(loaded)
        form = loaded.form if self._form is None else collated.merged(self._form, loaded.form)
        self._form, self._seen = form, self._seen + 1
        if loaded.reason:
            self._load_whole(loaded.reason)
        elif form is None:
            self._load_whole(_ANOTHER)
        elif self._may_shard():
            self._form, self._padded = collated.sided(form), collated.padded_sizes(form)
            self._meets = bool(self._padded) or collated.has_entries(form)
            if self._form is None:
                self._load_whole(_ANOTHER)
            elif self._meets and current_thread() is not main_thread():
                self._load_whole(_IN_A_THREAD)

    def _load_whole(self, reason: str) -> None:
        if not self._reason:
            self._require_whole(reason)
            self._reason = reason
            text = f"{type(self.dataset).__name__} is loaded whole on every process (exact, but no faster): {reason}"
            report.note(f"{id(self)} loader", text)
            warnings.warn(f"ddpify: {text}", stacklevel=4)

    def _see_labels(self, loaded: Loaded) -> None:
        """Those of a batch that was loaded whole need not be seen in parts, too, before it is known that all count."""
        if self._in_parts is not None and loaded.form is not None:
            with suppress(TypeError):  # as where indices are noted
                samples = [*map(index, loaded.indices)]
                for place, numbers in enumerate(collated.tensors(loaded.batch, loaded.form)):
                    self._labels_at(place).loaded_whole(samples, numbers)

    def _labels_at(self, place: int) -> Labels:
        if place == len(self._labels):
            self._labels.append(Labels())
        return self._labels[place]

    def _each_tensors_labels(self) -> Iterator[Labels]:
        """For each tensor in a batch that is loaded in parts what is known of its labels."""
        for place in count():
            labels = self._labels_at(place)
            labels.batch += 1
            yield labels

    def _passed(self) -> None:
        """A pass has ended, to its last batch."""
        for labels in self._labels:
            labels.passed(self._in_parts or set(), self._size())
        self._in_parts = None

    def _size(self) -> int:
        return len(self.dataset) if isinstance(self.dataset, Sized) else -1

    def _require_whole(self, reason: str) -> None:
        if self._divided:
            raise RuntimeError(
                f"ddpify: {type(self.dataset).__name__} was loaded in parts, one by each process, but now {reason}. "
                "The steps since it began may be wrong: import DataLoader from torch.utils.data, not ddpify_runtime"
            )


DataLoader.learnt = frozenset(DataLoader.__annotations__)

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
    """What this rank loads of each batch of a loader's batch sampler.

    The loader holds this, and is not held from here: a collection takes a cycle apart in some order of its own, so that
    workers that persist are not told of the end, and torch waits 5 s for each.
    """

    tells_whole_batches = True

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = ref(loader)

    @property
    def loader(self) -> DataLoader[Any]:
        loader = self._loader()
        assert loader is not None, "whoever asks for a batch holds the loader"
        return loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[list[Any]]:
        requests = self._requests(self.loader._stream)  # of this pass: zip(loader, loader) begins two at once
        return (request.message() for request in requests) if self.loader.num_workers else requests

    def _requests(self, stream: int | None) -> Iterator[Request]:
        place = 0
        for batch in sampler.batches(self.loader.batch_sampler):  # type: ignore[arg-type]
            indices = batch if isinstance(batch, (list, range)) else list(batch)
            check.draw(indices)
            yield self._request(indices, place, stream)
            place += len(indices)

    def _request(self, indices: Sequence[Any], first: int, stream: int | None) -> Request:
        """Of the samples of a batch, the first of which comes at this place of the pass."""
        rank, world_size, loader, total = dist.get_rank(), dist.get_world_size(), self.loader, len(indices)
        places, loader._largest = range(first, first + total), max(total, loader._largest)
        if not (loader._may_shard() and total >= world_size):
            asked = not loader._reason and not loader._divided and total >= world_size
            return Request(indices, places, total, False, world_size if asked else 0, stream)
        if not loader._divided:
            loader._divided = True
            text = f"{type(loader.dataset).__name__} is loaded in parts: batches of {loader._largest}"
            text += f", of which each process loads its {loader._largest // world_size}"
            report.note(f"{id(loader)} loader", text, detail=True)
        if loader._in_parts is not None:
            with suppress(TypeError):  # an index of a kind of the data set's own
                loader._in_parts.update(map(index, indices))
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
        loader: DataLoader[Any],
        batches: Iterator[Loaded | tuple[Any, int, int]],
        of_torch: Any,
    ) -> None:
        self.loader, self.batches, self.of_torch = loader, batches, of_torch

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        before = region.load(True)  # past a `with`, which costs as much as a small batch
        try:
            loaded = next(self.batches)
        except StopIteration:
            self.loader._passed()
            raise
        except Exception as error:  # whatever the data set raises
            if self.loader._divided:
                part = f"loading a part of a batch of {type(self.loader.dataset).__name__}"
                failure.require_everywhere(error, part, "Leave out what cannot be read before the loader is made")
            raise
        finally:
            region.load(before)
        if not isinstance(loaded, Loaded):
            batch, rows, total = loaded
            return self._sharded(batch, rows, total, "")
        if loaded.drawn is not None and self.loader._samples is not None:
            self.loader._samples.drawn = {*loaded.drawn, *(self.loader._samples.drawn or ())}
        if loaded.total:
            return self._sharded(loaded.batch, loaded.rows, loaded.total, loaded.reason)
        if loaded.asked:
            self.loader._learn(loaded)
        return loaded.batch

    def skip(self, count: int) -> int:
        """Draw the indices of the next batches, which are not loaded then; how many of them are to be taken still."""
        return draw_without_loading(self.of_torch, count)

    def _sharded(self, part: Any, rows: int, total: int, reason: str) -> Any:
        """What looks like the whole of a batch. Arguments as for `collated.shared`, and why it could not be divided."""
        loader, batch = self.loader, None
        labels = loader._each_tensors_labels()
        try:
            longest, joined = _agreed(part, loader, rows, total, bool(reason)) if loader._meets else ((), ())
            batch = collated.sharded(part, loader._form, rows, total, labels, iter(longest), iter(joined))
        except ValueError:
            reason = reason or "a batch has another form or size than the first ones"
        if reason:
            loader._require_whole(reason)
        return batch


def _agreed(
    part: Any, loader: DataLoader[Any], rows: int, total: int, fails: bool
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
    lengths = [0] * loader._padded
    lists: list[Sequence[Any]] = []
    try:
        lengths = lengths if fails else [*collated.lengths(part, loader._form)]
        lists = lists if fails else [*collated.entries(part, loader._form, rows)]
    except ValueError:
        fails = True
    if collated.has_entries(loader._form):
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
