"""How many dimensions an array or tensor has that the script makes."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.array_calls import Dimensions
from ddpify_codemods.facts.array_dimensions import ArrayDimensions

from tests.codemods.checks import script_of

HEAD = """\
import math, random
import numpy as np
import torch
from sklearn.datasets import load_iris, make_regression
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
        ("z = 2.0", 0),
        ("z = torch.from_numpy(a)", 2),
        ("z = a[:, 0]", 1),
        ("z = a[:, None, 0]", 2),
        ("z = a[N]", 1),
        ("z = a[unknown]", None),
        ("z = a[torch.randperm(N)[:5]]", 2),
        ("z = x @ torch.randn(3) + 0.1 * torch.randn(N)", 1),
        ("z = x @ weights", None),
        ("z = y\nz = z.unsqueeze(1)", 2),
        ("z = y\nz /= 3", 1),
        ("if N > 3:\n    z = y\nelse:\n    z = x", None),
        ("z = y\nif N > 3:\n    z = x", None),
        ("z = y\nfor i in range(3):\n    w = z\n    z = z.unsqueeze(1)\nz = w", None),
        ("z = [random.random() for _ in range(N)]", 1),
        ("z = load_iris().target", 1),
        ("data = load_iris()\nz = data.data", 2),
        ("data = make_regression()\nz = data.target", None),
        ('data = np.loadtxt("data.csv")\nz = data[:, -1]', 1),
        ('z = np.loadtxt("data.csv")', None),  # 1 if that has one column
        ("w = []\nfor i in range(3):\n    w.append(a[i])\nz = np.array(w)", 2),
        ("w = []\nfor i in range(3):\n    w.append(a[i])\nw.extend(y)\nz = np.array(w)", None),
        ("v, w = [], []\nfor i in range(3):\n    w.append(i)\nz = np.array(w)", 1),
    ],
)
def test_the_dimensions_of_what_a_name_holds(lines: str, dimensions: Dimensions) -> None:
    script = script_of(f"{HEAD}{lines}\nprint(z)\n")
    last = script.tree.body[-1]
    assert isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    assert ArrayDimensions(script).of(last.value.args[0]) == dimensions
