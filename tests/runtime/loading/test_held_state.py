"""What the loader sees of a data set while it loads samples."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import random
import tarfile
import tempfile
import zipfile
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime.loading import held_state
from ddpify_runtime.loading.samples import Request, Samples
from torch.utils.data import ConcatDataset, Dataset, Subset, default_collate

COUNTS = [0]
COUNT = 0
UNUSED = random.Random(4)


class Rows(Dataset[float]):
    """20 samples, which a function makes of the data set and the index."""

    number = 0

    def __init__(self, make: Callable[[Any, int], Any], **held: Any) -> None:
        self.make = make
        for name, value in held.items():
            setattr(self, name, value)

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return self.make(self, index)


def counts_in_class(rows: Any, index: int) -> int:
    Rows.number += 1
    return Rows.number


def counts_in_global(rows: Any, index: int) -> int:
    global COUNT
    COUNT += 1
    return COUNT


def counts_in_global_list(rows: Any, index: int) -> int:
    COUNTS[0] += 1
    return COUNTS[0]


def counts(rows: Any, index: int) -> int:
    rows.held += 1
    return int(rows.held)


def counts_in_vain(rows: Any, index: int) -> int:
    rows.never_read += 1
    return index


def reads_by_name(rows: Any, index: int) -> int:
    rows.read_by_name += 1
    return int(getattr(rows, "read_by_name"))  # noqa: B009


def counts_first(rows: Any, index: int) -> int:
    rows.held[0] += 1
    return int(rows.held[0])


def appends(rows: Any, index: int) -> int:
    rows.held.append(index)
    return len(rows.held)


def visits(rows: Any, index: int) -> int:
    rows.held[index] = rows.held.get(index, 0) + 1
    return int(rows.held[index])


def remembers(rows: Any, index: int) -> float:
    if rows.held[index] is None:
        rows.held[index] = index / 7
    return float(rows.held[index])


def remembers_by_key(rows: Any, index: int) -> float:
    return float(rows.held.setdefault(f"{index}.png", index / 7))


def numbers_names(rows: Any, index: int) -> int:
    return int(rows.held.setdefault(f"name {index // 2}", rows.first + len(rows.held)))


def keeps_labels(rows: Any, index: int) -> int:
    return int(rows.held.setdefault(index, index // 2))


def opens(rows: Any, index: int) -> float:
    if rows.held is None:
        rows.held = [0.5]
    return float(rows.held[0])


def opens_new(rows: Any, index: int) -> float:
    if not hasattr(rows, "opened"):
        rows.opened = {"a": 1.0}
    return float(rows.opened["a"])


def goes_on(rows: Any, index: int) -> float:
    return float(next(rows.held))


def draws(rows: Any, index: int) -> float:
    return float(rows.held.random())


def draws_common(rows: Any, index: int) -> float:
    return random.random() + float(np.random.rand()) + torch.rand(()).item()


def uses_global(rows: Any, index: int) -> int:
    return index + len([UNUSED])


def enclosed() -> Callable[[Any, int], int]:
    count = 0

    def make(rows: Any, index: int) -> int:
        nonlocal count
        count += 1
        return count

    return make


class Step:
    """A transform that counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, index: int) -> int:
        self.calls += 1
        return index * self.calls


def transforms(rows: Any, index: int) -> int:
    return int(rows.held["train"][0](index))


def ahead(more: int, rows: Any, index: int) -> int:
    return int(rows.held(index)) + more


CONTEXT = ContextVar("CONTEXT", default=0)
LINES = "\n".join(map(str, range(1000)))


def counts_in_context(rows: Any, index: int) -> int:
    CONTEXT.set(CONTEXT.get() + 1)
    return CONTEXT.get()


def counts_in_environment(rows: Any, index: int) -> int:
    os.environ["DDPIFY_TEST"] = str(int(os.environ.get("DDPIFY_TEST", "0")) + 1)
    return int(os.environ["DDPIFY_TEST"])


def counts_in_value(rows: Any, index: int) -> int:
    rows.held.value += 1
    return int(rows.held.value)


def rotates(rows: Any, index: int) -> int:
    rows.held.rotate(1)
    return int(rows.held[0])


def reads_on(rows: Any, index: int) -> int:
    return int(rows.held.readline())


def reads_there(rows: Any, index: int) -> int:
    rows.held.seek(0)
    return int(rows.held.readline()) + index


def reads_first(rows: Any, index: int) -> int:
    with open(OPEN[0].name) as file:
        return int(file.readline()) + index


def a_file(mode: str) -> Any:
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115  as data sets keep them
    file.write(LINES.encode())
    file.flush()
    OPEN.append(file)
    return open(file.name, mode)


def extracts(rows: Any, index: int) -> int:
    return int(rows.held.extractfile(str(index)).read())


def an_archive(kind: str) -> Any:
    file = tempfile.NamedTemporaryFile(suffix=f".{kind}")  # noqa: SIM115
    OPEN.append(file)
    if kind == "npz":
        arrays: dict[str, Any] = {str(index): np.array(index) for index in range(20)}
        np.savez(file.name, **arrays)
        OPEN.append(np.load(file.name))
    elif kind == "zip":
        with zipfile.ZipFile(file.name, "w") as made:
            for index in range(20):
                made.writestr(str(index), str(index))
        OPEN.append(zipfile.ZipFile(file.name))
    else:
        with tarfile.open(file.name, "w") as tar:
            for index in range(20):
                entry = tarfile.TarInfo(str(index))
                entry.size = len(str(index))
                tar.addfile(entry, io.BytesIO(str(index).encode()))
        OPEN.append(tarfile.open(file.name))  # noqa: SIM115
    return OPEN[-1]


OPEN: list[Any] = []
CHANGE: dict[str, Any] = {
    "context variable": Rows(counts_in_context),
    "environment": Rows(counts_in_environment),
    "shared value": Rows(counts_in_value, held=multiprocessing.Value("i", 0)),
    "ring": Rows(rotates, held=deque(range(50))),
    "bytes": Rows(counts_first, held=bytearray(4)),
    "machine numbers": Rows(counts_first, held=array("i", [0])),
    "file": Rows(reads_on, held=a_file("r")),
    "binary file": Rows(reads_on, held=a_file("rb")),
    "file in memory": Rows(reads_on, held=io.StringIO(LINES)),
    "lines": Rows(goes_on, held=a_file("r")),
    "class": Rows(counts_in_class),
    "global": Rows(counts_in_global),
    "global list": Rows(counts_in_global_list),
    "closure": Rows(enclosed()),
    "number": Rows(counts, held=0),
    "number of a subset": ConcatDataset([Subset(Subset(Rows(counts, held=0), range(20)), range(20))]),
    "number read by name": Rows(reads_by_name, read_by_name=0),
    "tensor": Rows(counts, held=torch.zeros(())),
    "array": Rows(counts, held=np.zeros(())),
    "large array": Rows(counts_first, held=np.zeros(100_000)),
    "list": Rows(counts_first, held=[0]),
    "long list": Rows(counts_first, held=[0] * 1000),
    "dict": Rows(counts_first, held={0: 0}),
    "history": Rows(appends, held=[]),
    "queue": Rows(appends, held=deque(maxlen=100)),
    "visits": Rows(visits, held={}),
    "names": Rows(numbers_names, held={}, first=0),
    "names from 1": Rows(numbers_names, held={}, first=1),
    "names beside others": Rows(numbers_names, held={"<pad>": 0, "<unknown>": 1}, first=0),
    "iterator": Rows(goes_on, held=iter(range(1000))),
    "transform": Rows(transforms, held={"train": [Step()]}),
    "method": Rows(partial(ahead, 1), held=Step().__call__),
    "random": Rows(draws, held=random.Random(0)),
    "numpy's Generator": Rows(draws, held=np.random.default_rng(0)),
    "numpy's RandomState": Rows(lambda rows, index: rows.held.rand(), held=np.random.RandomState(0)),
    "torch's Generator": Rows(lambda rows, index: torch.rand((), generator=rows.held), held=torch.Generator()),
}
SAME: dict[str, Any] = {
    "nothing": Rows(lambda rows, index: index),
    "entries of a zip file": Rows(lambda rows, index: int(rows.held.read(str(index))), held=an_archive("zip")),
    "entries of a tar file": Rows(
        lambda rows, index: int(rows.held.extractfile(str(index)).read()), held=an_archive("tar")
    ),
    "arrays of a npz file": Rows(lambda rows, index: int(rows.held[str(index)]), held=an_archive("npz")),
    "places in a file": Rows(reads_there, held=a_file("r")),
    "a file that is opened for each": Rows(reads_first),
    "a list": [*range(20)],
    "a count that nobody reads": Rows(counts_in_vain, never_read=0),
    "memo": Rows(remembers, held=[None] * 20),
    "long memo": Rows(remembers, held=[None] * 200),
    "memo by key": Rows(remembers_by_key, held={}),
    "labels by key": Rows(keeps_labels, held={}),
    "opened late": Rows(opens, held=None),
    "opened late, new": Rows(opens_new),
    "common generators": Rows(draws_common),
    "unused generators": Rows(uses_global, held=[np.random.RandomState(0), torch.Generator(), random.Random(1)]),
}


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a data set counts there is no other test's."""
    monkeypatch.setenv("DDPIFY_TEST", "0")


@pytest.fixture(scope="module", autouse=True)
def close() -> Iterator[None]:
    yield
    for file in OPEN:
        file.close()


def load(samples: Samples, *, part: bool, first: int = 0) -> str:
    places = range(first, first + 10)
    request = Request([*places][::2] if part else [*places], places[::2] if part else places, 10, part, 2 - 2 * part, 7)
    return samples.load(request).reason


@pytest.mark.parametrize("name", CHANGE)
def test_a_change_is_seen(name: str) -> None:
    assert load(Samples(CHANGE[name], default_collate), part=False)
    if name not in (
        "large array",
        "long list",
        "iterator",
        "lines",
        "visits",
        *(each for each in CHANGE if each.startswith("names")),  # which are all known by then
    ):  # which are looked at in the first batch alone
        assert load(Samples(CHANGE[name], default_collate), part=True)


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_sample_is_allowed(name: str) -> None:
    samples = Samples(SAME[name], default_collate)
    assert [load(samples, part=False), load(samples, part=True, first=10)] == ["", ""]


def test_what_a_second_look_leaves_is_put_back() -> None:
    dataset = Rows(visits, held={3: 5})
    load(Samples(dataset, default_collate), part=False)
    assert dataset.held == dict.fromkeys(range(10), 1) | {3: 6}  # type: ignore[attr-defined]


def test_the_script_may_change_a_data_set_between_passes() -> None:
    dataset = Rows(lambda rows, index: index * rows.level, level=1)
    samples = Samples(dataset, default_collate)
    assert not load(samples, part=False)
    dataset.level = 2  # type: ignore[attr-defined]
    assert not load(samples, part=True, first=10)


class Pickled:
    """One of its objects is pickled while the class is looked at, as the thread that feeds a worker's queue does."""


def test_what_pickling_adds_to_a_class_is_no_change() -> None:
    held = held_state.reached(Pickled())
    before = held_state.snapshot(held, deep=True)
    pickle.dumps(Pickled(), protocol=2)
    assert "__slotnames__" in vars(Pickled)
    assert held_state.changed(held, before, held_state.snapshot(held, deep=True)) == ("", False)


TAKEN = object()


class Named:
    """Names an attribute, and no variable outside of it."""

    def __getitem__(self, index: int) -> Any:
        return self.TAKEN[index]  # type: ignore[attr-defined]


def test_an_attribute_is_no_variable_of_its_name() -> None:
    """`for x, y in loader` at the top level of a script changes no sample of `self.x`."""
    held = held_state.reached(Named()).held
    assert all(value is not TAKEN for each in held for value in each.values().values())
