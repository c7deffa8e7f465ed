"""A list of a batch, such as its file names, of which each rank holds a part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader, DistributedDataParallel, rank_zero_only
from torch import Tensor, nn

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
            name * 2,
        ]
    return answers


def test_a_part_of_a_list_looks_like_the_whole() -> None:
    (alone,) = run(1, names)
    assert run(2, names) == [alone, alone]


class Detector(nn.Module):
    """Losses of a model that is given the boxes of each sample in a list, as those of torchvision are."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x: Tensor, targets: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        found = self.layers(x)
        pairs = zip(found, targets, strict=True)
        distances = [torch.cdist(one[None], target["boxes"]).min() for one, target in pairs]
        return {"boxes": torch.stack(distances).mean(), "size": found.square().mean()}


def detected(kind: type) -> list[list[float]]:
    """The losses of each step. kind: of what the loader gives the boxes in."""
    torch.manual_seed(0)
    data: Any = [(torch.randn(6), {"boxes": torch.rand(1 + i % 3, 4)}) for i in range(32)]

    def collate(samples: Any) -> Any:
        return torch.stack([x for x, _ in samples]), kind(target for _, target in samples)

    loader: DataLoader[Any] = DataLoader(data, 8, shuffle=True, collate_fn=collate)
    model = DistributedDataParallel(Detector())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(2):
        for x, targets in loader:
            found = model(x, targets)
            optimizer.zero_grad()
            sum(found.values()).backward()
            optimizer.step()
            losses.append([each.item() for each in found.values()])
    return losses


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_given_the_list_of_all_samples(kind: type) -> None:
    (alone,) = run(1, detected, kind)
    for ranks in (2, 3):
        for losses in run(ranks, detected, kind):
            torch.testing.assert_close(losses, alone)


def lists() -> list[Any]:
    """What torch and Python make of lists with a tensor or a number for each sample."""
    torch.manual_seed(0)
    data: Any = [(torch.full((1 + i % 3, 2), float(i)), i, None if i % 4 else "x") for i in range(24)]
    loader: DataLoader[Any] = DataLoader(data, 4, shuffle=True, collate_fn=lambda batch: [*zip(*batch, strict=True)])
    answers: list[Any] = []
    for points, numbers, texts in loader:
        sizes = [len(each) for each in points]
        answers.append((torch.cat(points).tolist(), json.dumps(numbers), numbers * 2, texts, type(points)))
        answers.append([each.shape for each in torch.zeros(sum(numbers)).split(numbers)])
        answers.append([each.tolist() for each in torch.cat(points).split(sizes)])
    return answers


def test_lists_that_torch_takes_are_whole() -> None:
    (alone,) = run(1, lists)
    for ranks in (2, 3):
        assert run(ranks, lists) == [alone] * ranks


def collected(kind: type) -> list[Any]:
    """What a script gathers of the texts of an evaluation, and writes. kind: of what the loader gives them in."""
    torch.manual_seed(0)
    data: Any = [(float(i), f"{i}.png") for i in range(14)]

    def collate(samples: Any) -> Any:
        return torch.tensor([number for number, _ in samples]), kind(name for _, name in samples)

    loader: DataLoader[Any] = DataLoader(data, 4, collate_fn=collate)
    answers: list[Any] = []
    added: list[Any] = []
    same, joined, batches = added, kind(), []
    for _, name in loader:
        added += name
        joined = joined + name
        batches.append(name)
        answers.append(json.dumps({"names": name}))
    return [*answers, same is added, added, joined, sum(batches, kind()), json.dumps(batches), json.dumps(added)]


@pytest.mark.parametrize("kind", [list, tuple])
def test_texts_of_an_evaluation_are_gathered_and_written(kind: type) -> None:
    (alone,) = run(1, collected, kind)
    for ranks in (2, 3):
        assert run(ranks, collected, kind) == [alone] * ranks


def test_what_json_does_not_know_is_still_an_error() -> None:
    with pytest.raises(TypeError, match="complex"):
        json.dumps(1j)
