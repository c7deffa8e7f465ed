"""How calls of losses are weighed whose targets count differently."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.weighing import weighed

from tests.codemods.checks import script_of


def count(code: str, ignores: bool = False) -> str:
    """What the first call of `loss`, or of cross_entropy, in a file is divided by; "" where that is not seen."""
    script = script_of("import torch\nimport torch.nn.functional as F\n" + code)
    made = next((call for call in script.find(ast.Call) if ast.unparse(call.func).endswith("Loss")), None)
    node = next(call for call in script.find(ast.Call) if ast.unparse(call.func) in ("loss", "F.cross_entropy"))
    found = weighed(script, node, made or node, ignores, lambda argument: (script, argument))
    return found.count if found is not None else ""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("loss = torch.nn.NLLLoss(ignore_index=3)\nl = loss(x, y[:, 1:])", "(y[:, 1:] != loss.ignore_index).sum()"),
        ("loss = torch.nn.NLLLoss(torch.rand(3))\nl = loss(x, target=y)", "loss.weight[y].sum()"),
        ("l = F.cross_entropy(x, y.t(), ignore_index=args.pad)", "(y.t() != args.pad).sum()"),
        ("l = F.cross_entropy(x, y, ignore_index=f())", ""),
        ("l = F.cross_entropy(x, y, w, None, 3)", ""),
        ("l = F.cross_entropy(*both, ignore_index=3)", ""),
        ("l = F.cross_entropy(x, y + 1, ignore_index=3)", ""),
        ("F.cross_entropy(x, y, ignore_index=3)", ""),
        ("F.cross_entropy(x, y, ignore_index=3).backward()", "(y != 3).sum()"),
        ("loss = torch.nn.NLLLoss(weight=None)\nl = loss(x, y)", ""),
    ],
)
def test_what_a_loss_is_divided_by(code: str, expected: str) -> None:
    assert count(code) == expected


GIVEN = """\
w = config['w']
w = torch.tensor(w).to(device)
w /= w.sum()
for x, y in loader:
    l = F.cross_entropy(x, y, w)
"""


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("", "", True),
        ("for x", "def train(w):\n  for x", False),
        ("    l =", "    if x: w = None\n    l =", False),
        ("y, w)\n", "y, w)\n    w = None\n", False),
        ("w = torch", "if w: w = torch", False),
        ("w = config['w']", "global w\nw = config['w']", False),
        ("w /= w.sum()", "def other():\n    global w\n    w = None", False),
        ("w = torch.tensor(w).to(device)", "w, v = torch.rand(3), None", False),
    ],
)
def test_weights_are_what_they_were_made_last(old: str, new: str, seen: bool) -> None:
    code = GIVEN.replace(old, new, 1)
    assert code != GIVEN or not old
    assert (count(code) == "w[y].sum()") is seen
    if "global" not in new:
        own = "def run():\n" + "".join(f"    {line}\n" for line in code.splitlines())
        assert (count(own) == "w[y].sum()") is seen


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("return torch.tensor(c) / len(c)", True),
        ("w = torch.tensor(c) / len(c)\n    w = 1 / w\n    return w", True),
        ("if c:\n        return torch.tensor(c)", False),
        ("if c:\n        return None\n    return torch.tensor(c)", False),
        ("return c", False),
        ("if c:\n        return\n    return torch.tensor(c)", False),
        ("return made(c)", False),
    ],
)
def test_weights_that_a_function_makes(body: str, seen: bool) -> None:
    made = f"def made(c):\n    {body}\nw = made([1, 2])\nloss = torch.nn.CrossEntropyLoss(weight=w)\nl = loss(x, y)"
    assert (count(made) == "loss.weight[y].sum()") is seen


def test_targets_that_torch_leaves_out_without_being_told() -> None:
    made = "loss = torch.nn.NLLLoss(torch.rand(3))\nl = loss(x, y)"
    assert count(made, ignores=True) == "loss.weight[y[y != loss.ignore_index]].sum()"
    assert count("loss = torch.nn.NLLLoss()\nl = loss(x, y)", ignores=True) == ""
