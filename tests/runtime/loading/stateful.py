"""Data sets whose samples may depend on what was loaded before, and how often each rank loads one."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import random
import struct
import warnings
from typing import Any

import numpy as np
import torch
from ddpify_runtime import DataLoader, get_world_size
from torch.utils.data import Dataset

from tests.runtime import processes


class Loaded:
    """Counts the rows that each rank and its workers load, where no data set sees it."""

    def __init__(self) -> None:
        self.counts, self.lock = mmap.mmap(-1, 8 * 4), multiprocessing.get_context("fork").Lock()

    def set(self, count: int) -> None:
        """The count of this rank."""
        struct.pack_into("q", self.counts, 8 * int(os.environ["RANK"]), count)

    def add(self, rows: int = 1) -> None:
        """This rank has loaded more rows."""
        with self.lock:
            self.set(self.of(4)[int(os.environ["RANK"])] + rows)

    def of(self, ranks: int) -> list[int]:
        """The counts of the first ranks."""
        return list(struct.unpack_from(f"{ranks}q", self.counts))


LOADED = Loaded()


class Slotted:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0.0


SLOTTED = Slotted()


class Stateful(Dataset[dict[str, Any]]):
    """40 samples that may depend on what was loaded before them."""

    def __init__(self, kind: str) -> None:
        self.kind, self.drawn, self.pool = kind, 0, [0.0] * 40
        self.unused = np.random.RandomState(3)
        self.visits = np.zeros(1000)
        self.memo: dict[int, float] = {}
        self.seen: dict[int, bool] = {}
        self.late: Any = None
        self.numbers = (float(i) for i in range(1000))

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int, earlier: list[int] = []) -> dict[str, Any]:  # noqa: B006
        LOADED.add()
        value = 0.0
        if self.kind == "counter" or (self.kind == "late counter" and index == 25):
            self.drawn += 1
            value = float(self.drawn)
        elif self.kind == "visits":
            self.visits[index] += 1
            value = self.visits[index]
        elif self.kind == "used generator":
            value = self.unused.rand()
        elif self.kind == "a global generator":
            value = GENERATOR.random()
        elif self.kind == "seen":
            self.seen[index] = True
            value = float(len(self.seen))
        elif self.kind == "an attribute of a function":
            vars(stateful).update(calls=vars(stateful).get("calls", 0) + 1)
            value = float(vars(stateful)["calls"])
        elif self.kind == "a slot":
            SLOTTED.calls += 1
            value = SLOTTED.calls
        elif self.kind == "a module":
            processes.counter += 1  # type: ignore[attr-defined]
            value = float(processes.counter)  # type: ignore[attr-defined]
        elif self.kind == "a default argument":
            earlier.append(index)
            value = float(len(earlier))
        elif self.kind == "iterator":
            value = next(self.numbers)
        elif self.kind == "memo":
            value = self.memo.setdefault(index, index / 3)
        elif self.kind == "opened late":
            self.late = self.late or [1.0]
        return {"x": torch.tensor([float(index), value]), "name": f"{index}.png", "y": index % 2}


GENERATOR = random.Random(0)


def stateful(kind: str, workers: int, collate: Any = None, batch_size: int = 8) -> tuple[Any, list[str], int]:
    LOADED.set(0)
    vars(processes)["counter"] = 0
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    dataset = Stateful(kind)
    if kind != "iterator":
        del dataset.numbers
    loader = DataLoader(dataset, batch_size, shuffle=True, num_workers=workers, generator=generator, collate_fn=collate)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [
            (batch["x"].tolist(), list(batch["name"]), isinstance(batch["name"], list), batch["y"].tolist())
            for _ in range(2)
            for batch in loader
        ]
    return (
        found,
        [str(each.message) for each in said if "ddpify" in str(each.message)],
        sum(LOADED.of(get_world_size())),
    )
