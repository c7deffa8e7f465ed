"""A collate function of one's own is given a rank's samples where its rows are theirs."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader
from torch.utils.data import Dataset

from tests.runtime.loading.stateful import LOADED, stateful
from tests.runtime.processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


def pad(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """To the longest, as for texts; here as long as the index says."""
    rows = [torch.ones(int(sample["x"][0])) for sample in samples]
    names = [sample["name"] for sample in samples]
    return {"x": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), "name": names, "y": torch.zeros(len(rows))}


def stack(samples: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "x": torch.stack([sample["x"] for sample in samples]),
        "name": [sample["name"] for sample in samples],
        "y": torch.tensor([sample["y"] for sample in samples]),
    }


def by_name(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """In another order than they come."""
    return stack(sorted(samples, key=lambda sample: str(sample["name"])))


def mix(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Mixup."""
    batch = stack(samples)
    return {**batch, "x": batch["x"] + torch.rand(()) * batch["x"].flip(0)}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "collate, reason", [(pad, ""), (by_name, "one row for each sample"), (mix, "collate function draws"), (stack, "")]
)
def test_a_collate_function_of_ones_own(collate: Any, reason: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, "plain", workers, collate)
    for found, said, _ in run(2, stateful, "plain", workers, collate):
        assert found == alone or collate is mix
        assert len(said) == bool(reason) and reason in "".join(said)
    if not workers:
        assert LOADED.of(2) == ([80, 80] if reason else [4 * 8 + 6 * 4] * 2)


def pad_to_a_half(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """As texts that are cut at a length which half of them reach: each part of a batch has such, by chance."""
    rows = [torch.ones(3 if sample["x"][0] % 4 < 2 else 2) for sample in samples]
    return {**stack(samples), "x": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)}


@pytest.mark.parametrize("ranks", [2, 3])
def test_padding_that_every_part_shares_by_chance_is_seen(ranks: int) -> None:
    ran = run(ranks, loaded_with, pad_to_a_half)
    assert ran == [(4 * 8 + 2 * len(range(rank, 8, ranks)), "") for rank in range(ranks)]


def loaded_with(collate: Any) -> tuple[int, str]:
    """How many samples this rank loads of 48 in batches of 8, and why."""

    class Rows(Dataset[dict[str, Any]]):
        def __len__(self) -> int:
            return 48

        def __getitem__(self, index: int) -> dict[str, Any]:
            LOADED.add()
            return {"x": torch.tensor([float(index)]), "name": str(index), "y": 0}

    LOADED.set(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sizes = [len(batch["x"]) for batch in DataLoader(Rows(), batch_size=8, collate_fn=collate)]
    assert sizes == [8] * 6
    said = [str(each.message) for each in caught if "is loaded whole" in str(each.message)]
    return LOADED.of(4)[int(os.environ["RANK"])], said[0].partition("): ")[2].partition(", or")[0] if said else ""


def pad_later(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """As long as the longest, which is seen at the index 25 alone."""
    rows = [torch.ones(1 + (sample["x"][0] == 25)) for sample in samples]
    return {**stack(samples), "x": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)}


def test_padding_that_begins_later_stops_the_run() -> None:
    with pytest.raises(AssertionError, match="now a batch has another form or size than the first ones"):
        run(2, stateful, "plain", 0, pad_later)
