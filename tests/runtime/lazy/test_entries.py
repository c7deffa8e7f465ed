"""A list of a batch, such as its file names, of which each rank holds a part."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader, rank_zero_only

from tests.runtime.processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


def names() -> list[Any]:
    """What a script does with a list of which each rank holds a part."""
    torch.manual_seed(0)
    data: Any = [(float(i), f"{i}.png") for i in range(12)]
    loader: DataLoader[Any] = DataLoader(data, 4, shuffle=True)
    answers: list[Any] = []
    for _, name in list(loader)[1:]:
        rank_zero_only(str)(name)  # which does not communicate
        answers += [
            len(name),
            isinstance(name, (list, tuple)),
            name[0],
            name[1:3],
            [*name],
            ", ".join(name),
            str(name),
            name == list(name),
            sorted(name),
            name[-1] in name,
            [*name, "more"],
            list(zip(name, range(4), strict=True)),
        ]
    return answers


def test_a_part_of_a_list_looks_like_the_whole() -> None:
    (alone,) = run(1, names)
    assert run(2, names) == [alone, alone]
