"""What a run leaves behind: exit code, texts, the optimizer steps that the recorder wrote down, files."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

# (values, norm, digest): all values and no digest, or a sample of them and the digest of all bytes. See the recorder.
Trace = tuple[Any, float, str]


@dataclass(frozen=True)
class Step:
    """One optimizer step: traces of the parameters after it and of the gradients it used, and what led to it.

    forwards, backwards: of torch's DistributedDataParallel and of all, up to this step. losses: what was differentiated
    since the step before. rows: of the first input of each such forward since then. rates: the learning rate of each
    group. draws: digests of the random number generators. batches: how many batches were drawn before this step.
    inputs: for each call of a trained module, digests of the slices of its first input, along its first and its second
    dimension. The others: see the recorder.
    """

    optimizer: int
    params: list[Any]
    grads: list[Any]
    forwards: int = 0
    buffers: list[Any] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    backwards: int = 0
    rows: list[int] = field(default_factory=list)
    draws: tuple[int, ...] = ()
    batches: int = 0
    inputs: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    carried: bool = False
    norms: list[float] = field(default_factory=list)
    penalties: int = 0
    nested: int = 0
    closures: int = 0
    looks: int = 0
    synced: list[bool] = field(default_factory=list)
    shadowed: list[str] = field(default_factory=list)
    replaced: bool = False


@dataclass(frozen=True)
class Batch:
    """The samples that were drawn from a loader: its pass (1-based, over all loaders) and what names the samples."""

    number: int
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Pass:
    """A pass over a loader. sampler, batch_sampler: their classes. length: of the set, if it has one.

    part: names the indices of a Subset. stream: whether it is an IterableDataset. workers: their number.
    """

    number: int
    sampler: str
    batch_sampler: str
    length: int | None
    part: int
    stream: bool
    workers: int


@dataclass
class Record:
    """All that the recorder wrote of one process. names, kinds: parameters and class of an optimizer, by its number.

    looks: forwards of DistributedDataParallel without gradients. missed: keys that a load_state_dict did not find.
    hash: of a word; equal where strings are hashed alike. remarks: what ddpify_runtime warned of. lengths: how many
    batches each training loader says it has, by its number. drawn: the indices of its batches, by their pass.
    shuffled: of those that shuffle, where they were made, of which data set. in_order: of the other loaders, those
    that do not.
    """

    steps: list[Step] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    names: dict[int, list[str]] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    stopped: bool = False  # it made as many steps as were asked for
    passes: dict[int, Pass] = field(default_factory=dict)
    looks: int = 0
    missed: int = 0
    hash: int = 0
    remarks: list[str] = field(default_factory=list)
    lengths: dict[int, int] = field(default_factory=dict)
    drawn: dict[int, list[list[list[int]]]] = field(default_factory=dict)
    shuffled: dict[int, str] = field(default_factory=dict)
    in_order: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Run:
    """What a run left behind. others: what ranks other than 0 printed, where that was kept apart."""

    rc: int
    stdout: str
    stderr: str
    records: Mapping[int, Record] = field(repr=False)  # by rank
    files: Mapping[str, Any] = field(repr=False)  # relative path -> see contents.read; directories end in "/"
    others: Mapping[int, str] = field(default_factory=dict, repr=False)

    def steps(self, rank: int = 0) -> list[Step]:
        """Return the optimizer steps of a rank; none if it left no record."""
        return self.records[rank].steps if rank in self.records else []


def read_records(folder: Path) -> dict[int, Record]:
    """Return what every rank recorded; also that of one which was killed while it wrote.

    Args:
        folder: what DDPIFY_RECORD named.
    """
    return {int(path.stem.removeprefix("rank")): _read(path) for path in folder.glob("rank*.pkl")}


def _read(path: Path) -> Record:
    record = Record()
    with path.open("rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            kind, values = pickle.load(stream)
            if kind == "step":
                values |= {name: [*map(_trace, values[name])] for name in ("params", "grads", "buffers")}
                record.steps.append(Step(**values, batches=len(record.batches)))
            elif kind == "batch":
                record.batches.append(Batch(*values))
            elif kind == "pass":
                record.passes[values["number"]] = Pass(**values)
            elif kind == "look":
                record.looks = values
            elif kind == "loaded":
                record.missed += values
            elif kind == "hash":
                record.hash = values
            elif kind == "divided":
                number, _, record.lengths[number], origin = values
                record.shuffled |= {number: origin} if origin else {}
                record.drawn.setdefault(number, []).append([])
            elif kind == "in order":
                record.in_order.add(values)
            elif kind == "drawn":
                record.drawn[values[0]][values[1]].append(values[2])
            elif kind == "remark":
                record.remarks.append(values)
            elif kind == "names":
                number, kind, names = values
                record.kinds[number], record.names[number] = kind, names
            else:
                record.stopped = True
    return record


def _trace(written: tuple[str, bytes, float, str] | None) -> Trace | None:
    if written is None:
        return None
    dtype, data, norm, digest = written
    return numpy.frombuffer(data, dtype), norm, digest
