"""Objects that live on rank 0: done there once, read alike on every rank."""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ddpify_runtime import DataLoader, DistributedDataParallel, get_rank, rank_zero_first, rank_zero_only
from torch import nn
from torch.utils.data import Dataset

from tests.runtime.processes import run


class Config:
    """As loggers keep them: settings that this process alone knows."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def __getitem__(self, key: str) -> Any:
        return self.settings[key]

    def keys(self) -> Any:
        return self.settings.keys()


class Run:
    """A logger's run; its numbers are another process's."""

    def __init__(self) -> None:
        self.id = f"run{os.getpid()}"
        self.dir = Path("runs") / self.id
        self.logged: list[Any] = []
        self.config = Config(lr=0.1 + os.getpid(), layers=[4, 2])

    def log(self, value: Any) -> None:
        self.logged.append(value)

    def count(self) -> int:
        return len(self.logged)

    def itself(self) -> Run:
        return self

    @property
    def parts(self) -> list[Any]:
        return [1, Config(a=os.getpid())]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self.logged.append("left")


def test_values_are_those_of_rank_zero() -> None:
    def read() -> list[Any]:
        run = rank_zero_only(Run)()
        config: Any = run.config
        seen = [run.id, run.dir, config["lr"], dict(config), {**config}, "lr" in config.keys()]  # noqa: SIM118
        seen += [isinstance(run, Run), run.itself().id == run.id, run.parts[0], run.parts[1]["a"], bool(run)]
        with run as inside:
            seen.append(inside.id)
        return seen

    first, *others = run(3, read)
    assert others == [first, first]
    assert first[3] == first[4] == {"lr": first[2], "layers": [4, 2]}
    assert first[5:9] == [True, True, True, 1]
    assert first[-1] == first[0]


def test_what_is_done_is_done_once() -> None:
    def do() -> list[Any]:
        run: Any = rank_zero_only(Run)()
        run.log("a")
        run.config.settings["b"] = 1
        run.note = "c"
        if get_rank() == 1:  # by its own clock, say
            run.log("d")
        with run:
            pass
        return [run.count(), run.logged, run.config["b"], run.note]

    assert run(2, do) == [[2, ["a", "left"], 1, "c"]] * 2


def test_errors_are_those_of_rank_zero() -> None:
    def fail() -> list[Any]:
        run: Any = rank_zero_only(Run)()
        with pytest.raises(KeyError):
            run.config["absent"]
        return [hasattr(run, "absent"), getattr(run, "absent", 3)]

    assert run(2, fail) == [[False, 3]] * 2


class Response:
    """As of a server that is asked by rank 0 alone."""

    def __init__(self) -> None:
        self.tries = 0

    def raise_for_status(self) -> Response:
        self.tries += 1
        if self.tries < 3:
            raise OSError(f"try {self.tries}")
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if value == "refused":
            raise OSError(value)
        super().__setattr__(name, value)


def test_what_the_script_catches_is_raised_on_every_rank() -> None:
    def ask() -> list[Any]:
        response: Any = rank_zero_only(Response)()
        seen = []
        for _ in range(2):
            try:
                response.raise_for_status()
            except OSError as error:
                seen.append(str(error))

        try:
            response.state = "refused"
        except OSError as error:
            seen.append(str(error))
        return [*seen, response.tries]

    assert run(3, ask) == [["try 1", "try 2", "refused", 2]] * 3


def test_rank_zero_reads_alone_too() -> None:
    def alone() -> list[Any]:
        run: Any = rank_zero_only(Run)()

        def look() -> Any:
            return run.id

        seen = [rank_zero_only(look)(), rank_zero_first(look)(), run.id]
        if get_rank() == 0:
            seen.append(run.dir)
        return [seen[0] == seen[1] == seen[2], run.dir]

    first, second = run(2, alone)
    assert first == second


def test_arguments_are_the_objects_themselves() -> None:
    def hand_over() -> Any:
        run: Any = rank_zero_only(Run)()
        run.log([run.config])
        return rank_zero_only(lambda logged: type(logged[0][0]).__name__)(run.logged)

    assert run(2, hand_over) == ["Config"] * 2


def test_arguments_may_lie_deep() -> None:
    def hand_over() -> Any:
        run: Any = rank_zero_only(Run)()
        run.log([{"step": {"settings": run.config}}, {}])
        return rank_zero_only(lambda logged: type(logged[0][0]["step"]["settings"]).__name__)(run.logged)

    assert run(2, hand_over) == ["Config"] * 2


def test_rows_are_inserted_once(tmp_path: Path) -> None:
    def insert() -> list[Any]:
        database: Any = rank_zero_only(sqlite3.connect)(tmp_path / "runs.db")
        cursor = database.cursor()
        cursor.execute("CREATE TABLE runs (epoch INTEGER, loss REAL)")
        for epoch in range(3):
            cursor.execute("INSERT INTO runs VALUES (?, ?)", (epoch, epoch / 2))
        database.commit()
        rows = [row for row in database.execute("SELECT * FROM runs")]  # noqa: C416  iterates
        return [rows, cursor.execute("SELECT COUNT(*) FROM runs").fetchone()]

    expected = [[(0, 0.0), (1, 0.5), (2, 1.0)], (3,)]
    assert run(2, insert) == [expected] * 2


class Study:
    """Searches as optuna does: draws without a common seed, and calls the objective."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def optimize(self, objective: Any, trials: int) -> None:
        for _ in range(trials):
            trial = Trial()
            try:
                self.values.append((trial.drawn, float(objective(trial))))
            except StopIteration:
                self.values.append((trial.drawn, "pruned"))


class Trial:
    def __init__(self) -> None:
        self.drawn = int.from_bytes(os.urandom(4), "big") / 2**32
        torch.rand(1)  # from the generator that all ranks have in common

    def suggest(self, low: float, high: float) -> float:
        return low + self.drawn * (high - low)


def search(pruned: bool) -> list[Any]:
    torch.manual_seed(0)
    study: Any = rank_zero_only(Study)()
    trained = []

    def objective(trial: Any) -> Any:
        model = DistributedDataParallel(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=trial.suggest(0.01, 0.1))
        for _ in range(2):
            optimizer.zero_grad()
            loss = model(torch.rand(8, 3)).mean()
            loss.backward()
            optimizer.step()
        trained.append(model.weight.tolist())
        if pruned and len(trained) == 2:
            raise StopIteration
        return loss.detach()  # a number of which every rank may have a part

    study.optimize(objective, 3)
    return [trained, study.values, torch.rand(1).item()]


@pytest.mark.parametrize("pruned", [False, True])
def test_a_search_makes_its_trials_once_with_one_set_of_numbers(pruned: bool) -> None:
    first, second = run(2, search, pruned)
    assert first == second
    assert len(first[0]) == len(first[1]) == 3
    assert (first[1][1][1] == "pruned") is pruned


def test_a_search_may_be_a_function() -> None:
    def minimize(function: Any, tries: int) -> dict[str, float]:
        drawn = [int.from_bytes(os.urandom(4), "big") / 2**32 for _ in range(tries)]
        return {"x": min(drawn, key=function)}

    def all_of_it() -> list[Any]:
        seen: list[float] = []

        def distance(x: float) -> float:
            seen.append(x)
            return abs(x - 0.5)

        return [rank_zero_only(minimize)(distance, 4), seen]

    first, second = run(2, all_of_it)
    assert first == second
    assert len(first[1]) == 4


def test_an_objective_that_fails_on_one_rank_ends_there() -> None:
    def fail() -> str:
        study: Any = rank_zero_only(Study)()

        def objective(trial: Any) -> float:
            if get_rank() == 1:
                raise ValueError("rank 1 is unwell")
            return 0.0

        try:
            study.optimize(objective, 1)
        except ValueError as error:
            return str(error)
        return "done"

    assert run(2, fail) == ["done", "rank 1 is unwell"]


class Rows(Dataset[torch.Tensor]):
    def __init__(self, config: Any) -> None:
        self.config = config

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((2,), index * self.config["lr"])


def loaded(workers: int, read_before: bool) -> Any:
    config = rank_zero_only(Config)(lr=float(os.getpid()))
    if read_before:
        assert config["lr"]
    try:
        batches = list(DataLoader(Rows(config), 5, shuffle=True, num_workers=workers))
        return sorted(torch.cat(batches)[:, 0].tolist())
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("workers", [0, 1])
def test_settings_that_a_data_set_reads(workers: int) -> None:
    first, *others = run(3, loaded, workers, True)
    assert others == [first, first]
    assert "read it before" in run(2, loaded, workers, False)[1]


def watch(module: nn.Module) -> list[Any]:
    """As loggers do: hooks that look at gradients."""
    seen: list[Any] = []
    for parameter in module.parameters():
        parameter.register_hook(lambda gradient: seen.append(gradient.clone()))
    return seen


def test_hooks_of_a_logger_see_the_whole_gradient() -> None:
    def train(watched: bool) -> list[Any]:
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(3, 2))
        x = torch.rand(6, 3)
        seen = rank_zero_only(Watch)(model).seen if watched else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it runs whole
            model(x).pow(2).mean().backward()
        assert model.weight.grad is not None
        return [model.weight.grad.tolist(), [each.tolist() for each in seen]]

    (watched, seen), other = run(2, train, True)
    assert torch.allclose(torch.tensor(watched), torch.tensor(run(2, train, False)[0][0]))
    assert other[0] == watched
    assert torch.equal(torch.tensor(seen[0]), torch.tensor(watched)) or torch.equal(
        torch.tensor(seen[1]), torch.tensor(watched)
    )


class Watch:
    def __init__(self, module: nn.Module) -> None:
        self.seen = watch(module)


def traced(folder: Path) -> list[str]:
    handler = rank_zero_only(torch.profiler.tensorboard_trace_handler)(str(folder))
    kinds = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds, on_trace_ready=handler):
        torch.ones(3).sum()
    rank_zero_only(lambda: None)()
    return [path.suffix for path in folder.iterdir()]


def test_a_profiler_leaves_one_trace(tmp_path: Path) -> None:
    assert run(2, traced, tmp_path) == [[".json"]] * 2


class Archive:
    """A file that is complete once it is closed."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, list[int]()

    def add(self, row: int) -> None:
        self.rows.append(row)

    def close(self) -> None:
        time.sleep(0.2)
        self.path.write_text(str(self.rows))

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def archived(folder: Path) -> list[str]:
    archive: Any = rank_zero_only(Archive)(folder / "first")
    archive.add(1)
    archive.close()
    first = (folder / "first").read_text()
    with rank_zero_only(Archive)(folder / "second") as archive:
        archive.add(2)
    return [first, (folder / "second").read_text()]


def test_a_file_that_is_closed_is_complete_for_all(tmp_path: Path) -> None:
    assert run(3, archived, tmp_path) == [["[1]", "[2]"]] * 3


def closed_after_the_end(folder: Path) -> bool:
    archive = rank_zero_only(Archive)(folder / "first")
    with rank_zero_only(Archive)(folder / "second"):
        dist.destroy_process_group()
    archive.close()
    return True


def test_a_file_may_be_closed_after_the_end(tmp_path: Path) -> None:
    assert run(2, closed_after_the_end, tmp_path) == [True] * 2
