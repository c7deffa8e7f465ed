"""Whether a tensor is known to carry no gradient."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.without_gradient import carries_none, runs_without_gradient

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ("with torch.no_grad():\n    f(x)", True),
        ("@torch.no_grad()\ndef g():\n    f(x)", True),
        ("with torch.enable_grad():\n    f(x)", False),
        ("f(x)", False),
    ],
)
def test_what_runs_without_gradients(lines: str, answer: bool) -> None:
    script = script_of(f"import torch\n{lines}")
    assert runs_without_gradient(script, node_of(script, "f(x)")) is answer


@pytest.mark.parametrize(
    ("lines", "answer"),
    [("y = f(x.detach())", True), ("y = f(x)", False), ("y = f(torch.tensor(loss.item()))", True)],
)
def test_a_tensor_that_carries_none(lines: str, answer: bool) -> None:
    script = script_of(f"import torch\n{lines}")
    call = script.tree.body[1].value  # type: ignore[attr-defined]
    assert carries_none(script, call.args[0], call) is answer
