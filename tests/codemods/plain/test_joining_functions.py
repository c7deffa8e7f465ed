"""The functions that bring tensors together from all ranks, with gradients through them: what they compute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ddpify_codemods.rules.plain.joining_functions import joining_functions
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import script_of


def _known(kinds: dict[str, bool], others: torch.Tensor) -> dict[str, Any]:
    """The functions, on rank 1 of two, where the other rank has the same as this one, but for the rows of `others`."""

    def all_reduce(tensor: torch.Tensor) -> None:
        tensor.mul_(2)

    def all_gather(parts: list[torch.Tensor], tensor: torch.Tensor) -> None:
        parts[0].copy_(others)
        parts[1].copy_(tensor)

    asked = {"get_rank": lambda: 1, "get_world_size": lambda: 2}
    known: dict[str, Any] = {"torch": torch}
    known["dist"] = SimpleNamespace(all_reduce=all_reduce, all_gather=all_gather, **asked)
    exec(joining_functions(script_of("import torch\n"), kinds, TARGETS["cpu"]).code, known)
    return known


@pytest.mark.parametrize(("kind", "value", "gradient"), [("sum", 6.0, 2.0), ("mean", 3.0, 1.0)])
def test_gradients_come_back_from_all_ranks(kind: str, value: float, gradient: float) -> None:
    given = torch.tensor(3.0, requires_grad=True)
    made = _known({kind: False}, given)[f"differentiable_{kind}"](given)
    made.backward()
    assert given.grad is not None and (made.item(), given.grad.item()) == (value, gradient)


def test_rows_of_all_ranks_in_the_order_of_the_batch() -> None:
    given = torch.tensor([[1.0], [3.0]], requires_grad=True)
    rows = _known({"batch": False}, torch.tensor([[0.0], [2.0]]))["differentiable_batch"](given)
    assert rows.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]
    (rows.flatten() * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert given.grad is not None and given.grad.flatten().tolist() == [20.0, 2000.0]


def test_an_evaluation_keeps_what_it_has() -> None:
    given = torch.tensor(3.0)
    for is_evaluated, value in ((True, 3.0), (False, 6.0)):
        with torch.no_grad():
            assert _known({"sum": is_evaluated}, given)["differentiable_sum"](given).item() == value


def test_no_function_that_nobody_calls() -> None:
    known = _known({"mean": False}, torch.zeros(1))
    assert "differentiable_mean" in known and {"differentiable_sum", "DifferentiableBatch"}.isdisjoint(known)
