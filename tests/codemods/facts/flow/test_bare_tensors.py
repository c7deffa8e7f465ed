"""Tensors that are learned beside models: their gradients would stay those of each rank."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.flow.bare_tensors import attributes_given, bare_tensors
from ddpify_codemods.facts.script import Script

from ...plain.test_followed import CE, HEAD, LOOP, plain, refusals

OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def trained(optimizer: str, loss: str) -> str:
    """A script that trains with an optimizer of its own."""
    return HEAD.replace(OPTIMIZER, optimizer) + LOOP.format(loss=loss, step="optimizer.step()")


@pytest.mark.parametrize(
    "optimizer",
    [
        "t = nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([*model.parameters(), t], lr=0.1)\n",
        "t = torch.ones(1, requires_grad=True)\noptimizer = torch.optim.SGD(list(model.parameters()) + [t], lr=0.1)\n",
        "t = torch.ones(1).requires_grad_()\n"
        "optimizer = torch.optim.SGD([{'params': model.parameters()}, {'params': [t]}], lr=0.1)\n",
        "t = nn.Parameter(torch.ones(1))\nall_of = list(model.parameters())\nall_of.append(t)\n"
        "optimizer = torch.optim.SGD(all_of, lr=0.1)\n",
        "t = nn.Parameter(torch.ones(1))\n\n\ndef make(model, learned):\n"
        "    return torch.optim.SGD([*model.parameters(), learned], lr=0.1)\n\n\noptimizer = make(model, t)\n",
    ],
)
def test_a_tensor_beside_a_model_is_refused(optimizer: str) -> None:
    found = refusals(plain(trained(optimizer, "F.cross_entropy(model(x) / t, y)")))
    assert any("belongs to no module" in each for each in found)


@pytest.mark.parametrize(
    "optimizer",
    [
        OPTIMIZER,
        "t = torch.ones(1)\noptimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)\n",
        "optimizer = torch.optim.SGD([{'params': model.parameters(), 'lr': 0.1}], lr=0.2)\n",
    ],
)
def test_parameters_of_modules_are_not(optimizer: str) -> None:
    assert not refusals(plain(trained(optimizer, CE)))


def test_rows_put_to_a_batch_are_refused() -> None:
    pad = "F.cross_entropy(model(torch.cat([x, torch.zeros(8 - len(x), 4)])), y)"
    assert refusals(plain(trained(OPTIMIZER, pad)))


def test_what_variables_are_given_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred functions each is given what others get by the same names: not 100 to the power of four."""
    written = [0]
    unparse = ast.unparse

    def counted(node: ast.AST) -> str:
        written[0] += 1
        return unparse(node)

    helpers = "".join(f"def f{n}(a, b, rate):\n    return f{n + 1}(b, a, a + b + rate)\n\n\n" for n in range(60))
    optimizer = helpers + "def f60(a, b, rate):\n    return rate\n\n\nrate = f0(1, 2, 0.1)\n"
    optimizer += "optimizer = torch.optim.SGD([{'params': model.parameters(), 'lr': rate}], lr=0.1)\n"
    tree = ast.parse(trained(optimizer, CE))
    script = Script(Path("train.py"), "", tree, True, frozenset())
    given = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "torch.optim.SGD")
    monkeypatch.setattr(ast, "unparse", counted)
    assert not [*bare_tensors(script, given.args[0])]
    assert not [*attributes_given(script, ast.Name("rate"))]
    assert written[0] < 2_000
