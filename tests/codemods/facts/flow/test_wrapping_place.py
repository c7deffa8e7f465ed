"""Before which statement a model is wrapped."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import HEAD, TRAINING, wrapped


@pytest.mark.parametrize(
    ("makes", "before"),
    [
        ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "optimizer = torch"),
        # What is branched over is made in both branches: before them.
        (
            "if total:\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "else:\n    optimizer = torch.optim.Adam(model.parameters())",
            "if total",
        ),
        # A branch that makes the model: behind that.
        (
            "if total:\n    model = nn.Linear(4, 3)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "else:\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)",
            "optimizer = torch",
        ),
        # Both branches make it, or one takes it from a checkpoint: behind both.
        (
            "if total:\n    model = nn.Linear(4, 3)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "else:\n    state = torch.load('last.pt')\n    model, optimizer = state['model'], state['optimizer']\n"
            "total = 1",
            "total = 1",
        ),
        (
            "if total:\n    model = nn.Linear(4, 3)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "else:\n    state = torch.load('last.pt')\n    model = state['model']\n    optimizer = state['optimizer']\n"
            "total = 1",
            "total = 1",
        ),
        # Also where some of its parameters are frozen there.
        (
            "if total:\n    model = torch.load('last.pt')\n    optimizer = torch.optim.SGD(model.parameters())\n"
            "else:\n    model = nn.Linear(4, 3)\n    model.bias.requires_grad = False\n"
            "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntotal = 1",
            "total = 1",
        ),
        # DistributedDataParallel looks where the parameters are: behind what moves them.
        ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel.to('cuda')\nseen = 0", "seen = 0"),
    ],
)
def test_before_the_optimizer_and_the_branches_that_make_it(makes: str, before: str) -> None:
    found = wrapped(f"{makes}\n{TRAINING}", HEAD.partition("optimizer =")[0] + "total = 0\n")
    assert not found.problems
    assert all(ast.unparse(at).startswith(before) for at in found.models[0].at), [
        ast.unparse(at) for at in found.models[0].at
    ]


TWO = "other = torch.optim.Adam(model.parameters())\n"


@pytest.mark.parametrize(
    ("between", "before"),
    [
        ("", ["optimizer"]),
        ("total = 1\n", ["optimizer"]),
        # What the first wrapper does not know is not averaged by it: another model, parameters that were frozen.
        ("model = nn.Linear(4, 3)\n", ["optimizer", "other"]),
        ("for part in model.parameters():\n    part.requires_grad = True\n", ["optimizer", "other"]),
        (TRAINING, ["optimizer", "other"]),
    ],
)
def test_once_for_the_optimizers_that_share_a_model(between: str, before: list[str]) -> None:
    found = wrapped(between + TWO + TRAINING + "        other.step()\n")
    assert [ast.unparse(at).partition(" = ")[0] for at in found.models[0].at] == before


@pytest.mark.parametrize(
    "puts", ["model.append(nn.Linear(3, 3))", "model.last = nn.Linear(3, 3)", "setattr(model, 'last', nn.Linear(3, 3))"]
)
def test_what_gets_layers_between_two_optimizers_is_wrapped_behind_them_again(puts: str) -> None:
    head = HEAD.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Linear(4, 3))")
    found = wrapped(f"{puts}\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{TRAINING}", head)
    assert not found.problems and len(found.models[0].at) == 2
