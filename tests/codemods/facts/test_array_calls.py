"""How many dimensions arrays have that calls give."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.array_calls import Dimensions
from ddpify_codemods.facts.array_dimensions import ArrayDimensions

from tests.codemods.checks import script_of

HEAD = """\
import math, random
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import make_regression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

N = 100
x = torch.randn(N, 3)
y = x.sum(1)
a = np.random.rand(N, 3).astype(np.float32)


def line(n: int):
    x = torch.linspace(-1, 1, n).unsqueeze(1)
    return x, (x ** 3 + 0.1 * torch.rand(x.size())).squeeze(1)


def column(n=7):
    return torch.rand(n)
"""


@pytest.mark.parametrize(
    ("lines", "dimensions"),
    [
        ("z = torch.rand(N)", 1),
        ("z = torch.rand((N, 2))", 2),
        ("z = torch.rand(x.shape)", 2),
        ("z = torch.rand(*x.shape)", None),
        ("z = torch.rand(unknown)", None),
        ("z = np.random.normal(0, 1, (N, 2))", 2),
        ("z = np.random.randint(0, 2, size=N)", 1),
        ("z = torch.tensor([math.sin(i) for i in range(N)])", 1),
        ("z = torch.tensor([[1.0, 2.0], [3.0, 4.0]])", 2),
        ("z = torch.tensor([first, second])", None),
        ("z = torch.stack([y, y])", 2),
        ("z = torch.cat([x, x])", 2),
        ("z = x.sum(1, keepdim=True)", None),
        ("z = x.mean()", 0),
        ("z = x.max(1)", None),
        ("z = (x.sum(1) > 0).float()", 1),
        ("z = y.view(-1, 1)", 2),
        ("z = y.squeeze()", None),
        ("_, z = line(3)", 1),
        ("z, _ = line(3)", 2),
        ("z = column()", 1),
        ("_, z = make_regression(n_samples=N)", 1),
        ("_, z = make_regression(n_targets=2)", None),
        ("z = torch.zeros(unknown // 2)", 1),
        ("z = np.random.RandomState(0).randn(N, 2)", 2),
        ("rng = np.random.default_rng(0)\nz = rng.normal(size=(N, 2))", 2),
        ("rng = np.random.default_rng(0)\nz = rng.standard_normal(N)", 1),
        ("rng = np.random.default_rng(0)\nz = rng.normal(x)", None),
        ("z = torch.zeros(unknown + (3,))", None),
        ("z, _, _, _ = train_test_split(x, y)", 2),
        ("_, _, _, z = train_test_split(x, y)", 1),
        ("scaler = StandardScaler()\nscaler.fit(a)\nz = scaler.transform(a)", 2),
        ("z = transform(a)", None),
        ("z = unknown(x)", None),
        ('z = pd.read_csv(path)["y"].values', 1),
        ('z = torch.tensor(pd.read_csv(path)[["a", "b"]].values)', 2),
        ('table = pd.read_csv(path)\nz = table.drop(columns=["y"]).to_numpy()', 2),
        ("table = pd.read_csv(path)\nz = table.iloc[:, 0]", 1),
        ("z = pd.concat([first, second])", None),
    ],
)
def test_the_dimensions_of_what_a_call_gives(lines: str, dimensions: Dimensions) -> None:
    script = script_of(f"{HEAD}{lines}\nprint(z)\n")
    last = script.tree.body[-1]
    assert isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    assert ArrayDimensions(script).of(last.value.args[0]) == dimensions
