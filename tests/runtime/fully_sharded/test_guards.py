"""What would go on with a part of a parameter, or with none, ends or is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from ddpify_runtime import fully_shard, rank_zero_only
from torch import Tensor, nn

from tests.runtime import processes


def step(parameters: list[Tensor], model: nn.Module) -> None:
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    model(torch.rand(4, 2)).sum().backward()
    optimizer.step()


def before(model: nn.Module) -> None:
    parameters: list[Tensor] = [*model.parameters()]
    step(parameters, fully_shard(model))


def after(model: nn.Module) -> None:
    fully_shard(model)
    step([*model.parameters()], model)


def alone(model: nn.Linear) -> None:
    fully_shard(model)
    rank_zero_only(model.weight.sum().item)()


def told(function: Callable[[nn.Module], None]) -> str:
    warnings.simplefilter("ignore")
    try:
        function(nn.Linear(2, 2))
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("function", "message"), [(before, "before fully_shard had divided them"), (alone, "read by one rank alone")]
)
def test_what_would_go_wrong_ends(function: Callable[[nn.Module], None], message: str) -> None:
    assert all(message in answer for answer in processes.run(2, told, function))


def test_an_optimizer_that_has_the_parts_steps() -> None:
    assert processes.run(2, told, after) == ["", ""]


def norms() -> tuple[float, float]:
    torch.manual_seed(2)
    model = nn.Linear(3, 5)
    whole = model.weight.detach().norm().item()
    fully_shard(model)
    return whole, model.weight.detach().norm().item()


def test_a_number_that_is_read_is_that_of_the_whole() -> None:
    for whole, read in processes.run(2, norms):
        assert read == pytest.approx(whole)
