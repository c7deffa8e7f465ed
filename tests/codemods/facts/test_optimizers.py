"""What gets trained: each optimizer, and the modules whose parameters it is given."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.optimizers import optimizers

from tests.codemods.checks import script_of

HEAD = "import itertools, torch\nmodel, other = A(), B()\n"


@pytest.mark.parametrize(
    ("given", "modules"),
    [
        ("model.parameters()", ["model"]),
        ("itertools.chain(model.parameters(), other.parameters())", ["model", "other"]),
        ("[{'params': model.parameters()}, {'params': other.parameters(), 'lr': 1}]", ["model", "other"]),
        ("list(model.parameters()) + list(other.parameters())", ["model", "other"]),
        ("[p for p in model.parameters() if p.requires_grad]", ["model"]),
    ],
)
def test_parameters_lead_to_their_modules(given: str, modules: list[str]) -> None:
    (found,) = optimizers(script_of(f"{HEAD}o = torch.optim.SGD({given}, lr=0.1)"))
    assert sorted(base.code for base in found.bases) == modules
    assert not found.only_tensors


def test_tensors_that_belong_to_no_module() -> None:
    (found,) = optimizers(script_of(f"{HEAD}w = torch.zeros(3, requires_grad=True)\no = torch.optim.SGD([w], lr=0.1)"))
    assert found.only_tensors and not found.bases


def test_parameters_from_outside_of_a_function() -> None:
    (found,) = optimizers(script_of("import torch\ndef build(p):\n    return torch.optim.SGD(p, lr=0.1)"))
    assert found.passed_in


def test_a_loop_may_do_the_work_of_an_optimizer() -> None:
    (found,) = optimizers(script_of(f"{HEAD}for p in model.parameters():\n    p.data.sub_(0.1 * p.grad)"))
    assert [base.code for base in found.bases] == ["model"]


@pytest.mark.parametrize("names", ["optimizer", "optimizer, schedule"])
def test_parameters_are_handed_to_a_function(names: str) -> None:
    source = f"{HEAD}def build(p):\n    ...\n{names} = build(model.parameters())\noptimizer.step()"
    (found,) = optimizers(script_of(source))
    assert [base.code for base in found.bases] == ["model"]
