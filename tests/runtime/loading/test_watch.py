"""Samples that depend on what was loaded before them are loaded by every rank (D20)."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime import DataLoader
from torch import Tensor
from torch.utils.data import Dataset

from tests.runtime.loading.stateful import LOADED, stateful
from tests.runtime.processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


REASONS = {
    "counter": "changes drawn",
    "visits": "changes visits",
    "used generator": "changes unused",
    "a global generator": "changes GENERATOR",
    "seen": "loaded again",
    "an attribute of a function": "changes stateful.calls",
    "a default argument": "changes __getitem__().earlier",
    "a slot": "changes SLOTTED.calls",
    "a module": "changes processes.counter",
}


@pytest.mark.parametrize(
    "kind, reason, workers",
    [(*item, workers) for item in REASONS.items() for workers in (0, 2)] + [("iterator", "iterator (numbers)", 0)],
)
def test_samples_that_depend_on_earlier_ones_are_loaded_whole(kind: str, reason: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, kind, workers)
    for found, said, _ in run(2, stateful, kind, workers):
        assert found == alone
        assert len(said) == 1 and reason in said[0]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["plain", "memo", "opened late"])
def test_samples_that_do_not_are_loaded_in_parts(kind: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, kind, workers)
    for found, said, _ in run(2, stateful, kind, workers):
        assert found == alone
        assert not said
    if not workers:
        again = int(kind == "memo")  # a sample is loaded again, to see whether it is the same
        assert LOADED.of(2) == [8 + again + 9 * 4] * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_counter_that_begins_later_stops_the_run(workers: int) -> None:
    with pytest.raises(AssertionError, match=r"loaded in parts, one by each process, but now .* changes drawn"):
        run(2, stateful, "late counter", workers, None, 4)


class Harder(Dataset[Tensor]):
    """40 samples that the loop makes harder after each batch; or a sample does, whichever the loop does not see."""

    def __init__(self, by_itself: bool) -> None:
        self.noise, self.by_itself = 0.0, by_itself

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Tensor:
        LOADED.add()
        if self.by_itself and index == 30:
            self.noise += 1
        return torch.tensor([index + self.noise])


def harder(by_itself: bool) -> list[list[float]]:
    LOADED.set(0)
    dataset, found = Harder(by_itself), []
    for batch in DataLoader(dataset, batch_size=8):
        found.append(batch.flatten().tolist())
        dataset.noise += 0.25
    return found


def test_what_the_script_changes_between_batches_is_not_held_against_a_sample() -> None:
    """The first time that something is different a part is loaded once more, to see who changes it."""
    (alone,) = run(1, harder, False)
    assert run(2, harder, False) == [alone] * 2
    assert LOADED.of(2) == [8 + 4 + 4 * 4] * 2


def test_a_sample_that_changes_it_too_stops_the_run() -> None:
    with pytest.raises(AssertionError, match=r"loaded in parts, one by each process, but now .* changes noise"):
        run(2, harder, True)
