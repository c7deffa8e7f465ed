"""What a run leaves behind: exit code, texts, the optimizer steps that the recorder wrote down, files."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

# (values, norm, digest): all values and no digest, or a sample of them and the digest of all bytes. See the recorder.
Trace = tuple[Any, float, str]


@dataclass(frozen=True)
class Step:
    """One optimizer step: traces of the parameters after it and of the gradients it used (see the recorder)."""

    optimizer: int
    params: list[Any]
    grads: list[Any]
    forwards: int = 0  # of DistributedDataParallel, up to this step


@dataclass(frozen=True)
class Run:
    """What a run left behind."""

    rc: int
    stdout: str
    stderr: str
    records: Mapping[int, list[Step]]  # by rank
    files: Mapping[str, Any] = field(repr=False)  # relative path -> see contents.read; directories end in "/"


def read_records(folder: Path) -> dict[int, list[Step]]:
    """Return the steps of every rank that made any.

    Args:
        folder: what DDPIFY_RECORD named.
    """
    return {int(path.stem.removeprefix("rank")): list(_steps(path)) for path in folder.glob("rank*.pkl")}


def _steps(path: Path) -> Iterator[Step]:
    with path.open("rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            optimizer, params, grads, forwards = pickle.load(stream)
            yield Step(optimizer, [*map(_trace, params)], [*map(_trace, grads)], forwards)


def _trace(written: tuple[str, bytes, float, str] | None) -> Trace | None:
    if written is None:
        return None
    dtype, data, norm, digest = written
    return numpy.frombuffer(data, dtype), norm, digest
