"""Each sample takes parts of its own, by the places of all."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.own_places import counted_places

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import TRAINING, undivided


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ("torch.arange(n)", "n"),
        ("torch.arange(n, dtype=torch.long).to(device).view(n, 1)", "n"),
        ("torch.arange(n)[:, None]", "n"),
        ("torch.arange(0, n)", ""),
        ("torch.arange(n) // 2", ""),
        ("torch.arange(n)[1:, None]", ""),
        ("torch.arange(n).flip(0)", ""),
    ],
)
def test_places_in_order(made: str, counts: str) -> None:
    script = script_of(f"import torch\nplaces = {made}\nx[places, 0]\n")
    (taken,) = (node for node in script.nodes if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "x")
    assert isinstance(taken.slice, ast.Tuple)
    found = counted_places(script, taken.slice.elts[0])
    assert (ast.unparse(found) if found is not None else "") == counts


@pytest.mark.parametrize(
    ("loss", "fine"),
    [
        ("-F.log_softmax(model(x), 1)[torch.arange(len(x)), y].mean()", True),
        ("-F.log_softmax(model(x), 1)[torch.arange(x.size(0)), 0].mean()", True),
        ("(model(x)[torch.arange(len(x)), y] - model(x)[torch.arange(8), y]).mean()", False),
        ("-F.log_softmax(model(x), 1)[torch.arange(len(x)).flip(0), y].mean()", False),
    ],
)
def test_what_each_sample_takes_of_its_own(loss: str, fine: bool) -> None:
    assert (undivided(TRAINING.replace("F.cross_entropy(model(x), y)", loss)) == []) is fine
