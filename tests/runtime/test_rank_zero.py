"""Side effects once, in step."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from ddpify_runtime import (
    DataLoader,
    barrier,
    broadcast,
    destroy_process_group,
    get_rank,
    get_world_size,
    rank_zero_first,
    rank_zero_only,
    rank_zero_path,
    rank_zero_value,
)
from ddpify_runtime.forward import region
from torch.utils.data import Dataset

from .processes import run


def write(path: Path) -> tuple[int, str]:
    def append(text: str) -> int:
        with path.open("a") as file:
            return file.write(text)

    rank_zero_only(append)(f"rank {get_rank()}\n")
    return get_rank(), path.read_text()


def test_rank_zero_only_is_done_once_and_seen_by_all(tmp_path: Path) -> None:
    assert run(3, write, tmp_path / "log") == [(rank, "rank 0\n") for rank in range(3)]


def in_a_thread() -> bool:
    """Whether a thread that rank 0 starts alone knows that it is alone; if not, its collectives wait for ever."""
    alone = []

    def work() -> None:
        thread = Thread(target=lambda: alone.append(region.alone()))
        thread.start()
        thread.join()

    rank_zero_only(work)()
    return alone == [True] * (get_rank() == 0)


def test_what_a_rank_does_alone_may_start_threads() -> None:
    assert run(2, in_a_thread) == [True, True]


def in_forked_processes(folder: Path) -> tuple[list[bool], list[str]]:
    """What processes that a rank forks find and write; a collective of theirs would wait for ever."""

    def work(number: int) -> None:
        there = rank_zero_value(Path.exists)(folder)
        rank_zero_only((folder / f"{number}-{get_rank()}-{there}").write_text)("")

    processes = [multiprocessing.get_context("fork").Process(target=work, args=(number,)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    barrier()
    return [process.exitcode == 0 for process in processes], sorted(path.name for path in folder.iterdir())


def test_processes_that_a_rank_forks_wait_for_no_other_and_write_on_rank_zero(tmp_path: Path) -> None:
    assert run(2, in_forked_processes, tmp_path) == [([True, True], ["0-0-True", "1-0-True"])] * 2


def make(path: Path) -> str:
    try:
        rank_zero_only(os.mkdir)(path)
    except OSError as error:
        return type(error).__name__
    return "made"


def test_a_failure_on_rank_zero_is_everyones(tmp_path: Path) -> None:
    assert run(2, make, tmp_path / "new") == ["made"] * 2
    assert run(2, make, tmp_path) == ["FileExistsError"] * 2


def made() -> Any:
    return rank_zero_only(dict)(a=os.getpid())


def test_data_that_comes_of_it_is_everyones() -> None:
    first, second = run(2, made)
    assert first == second


def absent() -> list[Any]:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        writer: Any = rank_zero_only(dict)(a=1)
    if get_rank() == 0:
        return [writer]
    with writer as inside:
        inside.add_scalar("loss", 1.0)
    writer["x"] = 1
    writer.attribute = 2
    return [bool(writer), list(writer), writer.deeper.still() is writer]


def test_the_absent_object_absorbs_everything() -> None:
    assert run(2, absent) == [[{"a": 1}], [False, [], True]]


def values() -> tuple[int, str]:
    return rank_zero_value(os.getpid)(), str(rank_zero_path("log.csv"))


def test_values_come_from_rank_zero() -> None:
    first, second = run(2, values)
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("log.csv", os.devnull)


def download(path: Path) -> str:
    def get() -> str:
        if path.exists():
            return "found"
        path.write_text("data")
        return "fetched"

    return rank_zero_first(get)()


def test_downloads_happen_first_on_rank_zero(tmp_path: Path) -> None:
    assert run(3, download, tmp_path / "data") == ["fetched", "found", "found"]


def draw() -> list[list[float]]:
    return [rank_zero_first(torch.rand)(2).tolist(), torch.rand(2).tolist()]


def test_every_rank_draws_what_rank_zero_draws() -> None:
    first, second, third = run(3, draw)
    assert first == second == third
    assert first[0] != first[1]


def agree(path: Path) -> tuple[int, bool]:
    if get_rank() == 0:
        time.sleep(0.3)
        path.touch()
    barrier()
    return broadcast(get_rank() + 7), path.exists()


def test_all_have_the_value_of_rank_zero_and_wait_for_it(tmp_path: Path) -> None:
    assert run(3, agree, tmp_path / "done") == [(7, True)] * 3
    assert run(1, agree, tmp_path / "alone") == [(7, True)]


def alone() -> list[Any]:
    return [rank_zero_only(len) is len, rank_zero_first(len) is len, rank_zero_value(len) is len, rank_zero_path("x")]


def test_one_process_is_left_alone() -> None:
    assert run(1, alone) == [[True, True, True, "x"]]


def at_exit(folder: Path) -> list[Any]:
    destroy_process_group()
    with open(rank_zero_path(folder / "ended"), "a") as file:
        file.write("ended")
    rank_zero_only(os.mkdir)(folder / "new")
    rank_zero_only(dict)(a=1).get("a")
    in_a_thread: list[int] = []
    thread = Thread(target=lambda: in_a_thread.append(get_rank()))
    thread.start()
    thread.join()
    return [get_rank(), in_a_thread, rank_zero_value(len)("ab"), get_world_size()]


def test_a_process_keeps_its_rank_until_its_end(tmp_path: Path) -> None:
    assert run(3, at_exit, tmp_path) == [[rank, [rank], 2, 1] for rank in range(3)]
    assert (tmp_path / "ended").read_text() == "ended"


class Cached(Dataset[torch.Tensor]):
    """Each sample is kept in a file of its own when it is first loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        path = self.folder / f"{index}.pt"
        if not rank_zero_value(path.exists)():
            rank_zero_only(torch.save)(torch.tensor(float(index)), path)
            with open(rank_zero_path(self.folder / f"{index}.txt"), "w") as file:
                file.write(f"rank {get_rank()}")
        loaded: torch.Tensor = torch.load(path)
        return loaded


def loads(folder: Path) -> list[float]:
    batches = list(DataLoader(Cached(folder), batch_size=4))
    return [float(batch.sum()) for batch in batches]


def test_samples_of_a_rank_are_not_loaded_by_rank_zero(tmp_path: Path) -> None:
    """The first batch is loaded whole by all ranks, of the others each its own samples."""
    assert run(2, loads, tmp_path) == [[6.0, 22.0, 38.0]] * 2
    written = {int(path.stem): path.read_text() for path in tmp_path.glob("*.txt")}
    assert sorted(written) == [*range(12)]
    assert {written[index] for index in range(4, 12)} == {"rank 0", "rank 1"}


def read_and_write(path: Path) -> list[str]:
    seen = []
    for number in range(3):
        time.sleep(0.2 * get_rank())
        seen.append(path.read_text())
        path_here = rank_zero_path(path, wait=True)
        Path(path_here).write_text(str(number))
        barrier()
    return seen


def test_all_have_read_a_file_before_rank_zero_writes_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    assert run(3, read_and_write, tmp_path / "a") == [["first", "0", "1"]] * 3


class Counted(Cached):
    def __getitem__(self, index: int) -> torch.Tensor:
        rank_zero_path(self.folder, wait=True)
        return torch.tensor(float(index))


def loads_and_waits(folder: Path, workers: int) -> list[float]:
    batches = list(DataLoader(Counted(folder), batch_size=4, num_workers=workers))
    return [float(batch.sum()) for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
def test_nobody_waits_for_a_file_while_samples_are_loaded(tmp_path: Path, workers: int) -> None:
    assert run(2, loads_and_waits, tmp_path, workers) == [[6.0, 22.0, 38.0]] * 2
