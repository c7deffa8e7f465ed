"""Going on in the middle of an epoch: the batches that are left, and what is loaded for them."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader, carried, counted, goes_on, restore, resumable, resume_from
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from ..processes import run

ROWS, BATCH, STOP = 64, 8, 13  # two passes of 8 batches; the run ends behind 13 of them


class Rows(Dataset[Tensor]):
    """Notes in a file the rows that are loaded; may draw from a generator of its own."""

    def __init__(self, log: str = os.devnull, has_state: bool = False) -> None:
        self.log = log
        self.own = random.Random(1) if has_state else None

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Tensor:
        with open(self.log, "a") as file:
            file.write(f"{index}\n")
        noise = 0 if self.own is None else self.own.random()
        return torch.tensor(index + noise / 2)


class LoadedRows(Tensor):
    """Notes the rows that are taken of it."""

    noted_in = ""

    def __getitem__(self, index: Any) -> Any:
        with open(self.noted_in, "a") as file:
            file.write(f"{index}\n")
        return self.as_subclass(Tensor)[index]


def train(folder: str, stop: int, kind: str) -> list[list[int]]:
    """The batches of the steps that are made here; the rows that are loaded for them are noted in `folder/loaded`."""
    torch.manual_seed(5)
    warnings.simplefilter("ignore")  # a data set with a state is loaded whole
    Path(folder).mkdir(exist_ok=True)
    log = f"{folder}/loaded"
    dataset: Any = Rows(log, has_state=kind == "state")
    if kind == "tensors":
        rows = torch.arange(ROWS).as_subclass(LoadedRows)
        rows.noted_in = log
        dataset = TensorDataset(rows)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=2 if kind == "workers" else 0)
    resume_from(folder, every_steps=1)
    made: list[list[int]] = []
    step = 0
    restore()
    for _ in resumable(range(2)):
        step = carried(step)
        for _, batch in resumable(enumerate(loader)):
            step = carried(step)
            if step == stop:
                return made
            values = batch[0] if isinstance(batch, list) else batch
            made.append([int(each) for each in values.tolist()])
            torch.rand(1)  # as the steps of a model with dropout do
            step += 1
    return made


@pytest.mark.parametrize(
    ("world_size", "kind"), [(1, "tensors"), (1, "unknown"), (2, "parts"), (2, "state"), (2, "workers")]
)
def test_batches_that_are_done_are_not_loaded(tmp_path: Path, world_size: int, kind: str) -> None:
    loaded = tmp_path / "killed" / "loaded"
    whole = run(world_size, train, str(tmp_path / "whole"), -1, kind)[0]
    begun = run(world_size, train, str(tmp_path / "killed"), STOP, kind)[0]
    loaded.unlink()
    left = run(world_size, train, str(tmp_path / "killed"), -1, kind)[0]
    assert (begun, left) == (whole[:STOP], whole[STOP:])
    done = [row for batch in whole[8:STOP] for row in batch]
    again = {*map(int, loaded.read_text().split())} & {*done}
    asked = {"tensors": 0, "parts": 0, "workers": 4 * BATCH}  # two workers are asked for two batches each at once
    assert len(again) == asked.get(kind, len(done))


def forever(loader: DataLoader[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def take(folder: str, stop: int, kind: str) -> list[list[int]]:
    """The same with next(), in a `while` loop."""
    torch.manual_seed(5)
    loader = DataLoader(Rows(), batch_size=BATCH, shuffle=True)
    resume_from(folder, every_steps=1)
    made: list[list[int]] = []
    step = 0
    items: Any = counted(forever(loader)) if kind == "forever" else iter(counted(loader))
    restore(**({"items": items} if kind == "forever" else {}))
    while goes_on(step < 20):
        step, items = carried(step, items) if kind == "anew" else (carried(step), items)
        if step == stop:
            break
        try:
            batch = next(items)
        except StopIteration:
            items = iter(counted(loader))
            batch = next(items)
        made.append(batch.tolist())
        torch.rand(1)
        step += 1
    return made


@pytest.mark.parametrize("stop", [0, 5, 8, 9, 19])
@pytest.mark.parametrize("kind", ["forever", "anew"])
def test_items_of_an_iterator(tmp_path: Path, kind: str, stop: int) -> None:
    whole = run(1, take, str(tmp_path / "whole"), -1, kind)[0]
    begun = run(1, take, str(tmp_path / "killed"), stop, kind)[0]
    left = run(1, take, str(tmp_path / "killed"), -1, kind)[0]
    assert (begun, left) == (whole[:stop], whole[stop:])


def lose(folder: str) -> str:
    loader = DataLoader(Rows(), batch_size=BATCH)
    resume_from(folder, every_steps=2)
    items = iter(counted(loader))
    restore()
    try:
        for _ in resumable(range(4)):
            next(items)
    except RuntimeError as error:
        return str(error)
    return ""


def test_an_iterator_that_is_not_kept_is_refused(tmp_path: Path) -> None:
    assert (
        "next() takes items of an iterator that restore() and carried() are not given" in run(1, lose, str(tmp_path))[0]
    )


def begin_later(folder: str, values: tuple[int, str]) -> Any:
    resume_from(folder, every_steps=1)
    first, name = restore(*values)
    for _ in resumable(range(first, 5)):
        carried()
    return first, name


def test_values_that_a_file_decides_are_those_of_the_first_start(tmp_path: Path) -> None:
    assert run(1, begin_later, str(tmp_path), (2, "a"))[0] == (2, "a")
    assert run(1, begin_later, str(tmp_path), (4, "b"))[0] == (2, "a")


def begin_anew(folder: str) -> int:
    loader = DataLoader(Rows(), batch_size=BATCH)
    resume_from(folder, every_steps=1)
    restore()
    for _ in resumable(range(4)):
        carried()
        items: Any = iter(counted(loader))  # that of the round before is given up
        next(items)
    return 4


def test_an_iterator_that_is_given_up_is_not_missed(tmp_path: Path) -> None:
    assert run(1, begin_anew, str(tmp_path)) == [4]
