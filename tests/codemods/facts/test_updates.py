"""Steps that a script takes by hand."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.updates import steps, takes_gradients, update_loops, updated_tensors

from tests.codemods.checks import script_of, sources_of


@pytest.mark.parametrize(
    ("body", "is_update"),
    [
        ("p.data.sub_(0.1 * p.grad)", True),
        ("p -= 0.1 * p.grad", True),
        ("p.grad.zero_()", False),
        ("print(p.grad)", False),
    ],
)
def test_a_loop_that_changes_what_it_runs_over_by_its_gradients(body: str, is_update: bool) -> None:
    assert bool(list(update_loops(script_of(f"for p in model.parameters():\n    {body}")))) is is_update


def test_one_tensor_is_changed_by_its_own_gradient() -> None:
    found = list(updated_tensors(script_of("w -= 0.1 * w.grad\nv -= 0.1 * w.grad")))
    assert [(statement.lineno, ast.unparse(tensor)) for statement, tensor in found] == [(1, "w")]


def test_functions_that_take_a_step() -> None:
    script = script_of(
        "import torch\ntorch.optim.sgd.sgd(ps, gs)\nmodel.load_state_dict({'w': w - w.grad})\nf(out=w.data)\ng(w)"
    )
    assert [call.lineno for call in steps(script)] == [2, 3, 4]


def test_functions_that_give_gradients_back() -> None:
    script = script_of("import torch\nx = torch.autograd.grad(loss, w)\ny = torch.func.grad(f)(w)\nz = f(w)")
    given = [call for call in script.find(ast.Call) if takes_gradients(script, call)]
    assert {"torch.autograd.grad(loss, w)", "torch.func.grad(f)(w)"} <= set(sources_of(given))
    assert "f(w)" not in sources_of(given)
