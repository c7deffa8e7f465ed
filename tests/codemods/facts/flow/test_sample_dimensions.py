"""How many dimensions the tensors of a batch have."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.sample_dimensions import Parts, dimensions_of_batches

from tests.codemods.checks import script_of

HEAD = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from torchvision import datasets

x, y = torch.rand(8, 3), torch.rand(8)


class Points(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        {returns}


"""


def parts(given: str, returns: str = "return self.x[i], self.y[i]") -> Parts:
    """Those of a loader that is given something."""
    script = script_of(HEAD.format(returns=returns) + f"data = {given}\nloader = DataLoader(data, batch_size=2)\n")
    loader = script.tree.body[-1]
    assert isinstance(loader, ast.Assign) and isinstance(loader.value, ast.Call)
    return dimensions_of_batches(loader.value, script, (script,))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("TensorDataset(x, y)", ((0, 2), (1, 1))),
        ("TensorDataset(x, y.unsqueeze(1))", ((0, 2), (1, 2))),
        ("TensorDataset(x, unknown)", ((0, 2),)),
        ("TensorDataset(*unknown)", ()),
        ("random_split(TensorDataset(x, y), [4, 4])", ((0, 2), (1, 1))),
        ("Subset(TensorDataset(x, y), [0, 1])", ((0, 2), (1, 1))),
        ("list(zip(x, y))", ((0, 2), (1, 1))),
        ("[(torch.rand(3), float(i)) for i in range(8)]", ((0, 2), (1, 1))),
        ("[torch.rand(3) for _ in range(8)]", ((None, 2),)),
        ("datasets.MNIST('data')", ((1, 1),)),
        ("Points(x, y)", ((0, 2), (1, 1))),
        ("unknown(x, y)", ()),
        ("mine.TensorDataset(x, y)", ()),
    ],
)
def test_the_dimensions_of_a_batch(given: str, expected: Parts) -> None:
    assert parts(given) == expected


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("return self.x[i]", ((None, 2),)),
        ("return {'x': self.x[i], 'y': self.y[i]}", (("x", 2), ("y", 1))),
        ("sample = {'x': self.x[i]}\n        return sample", (("x", 2),)),
        ("sample = self.x[i], self.y[i]\n        return sample", ((0, 2), (1, 1))),
        ("return self.x[i], torch.tensor([1.0])", ((0, 2), (1, 2))),
        ("return self.transform(self.x[i]), float(self.y[i])", ((1, 1),)),
        ("return self.x[:i], 3", ((0, 3), (1, 1))),
        ("if i:\n            return self.x[i], 3\n        return self.y[i], 3", ()),
    ],
)
def test_the_dimensions_follow_from_what_a_data_set_returns(returns: str, expected: Parts) -> None:
    assert parts("Points(x, y)", returns) == expected


def test_another_collate_function_may_make_anything() -> None:
    script = script_of(HEAD.format(returns="return 3") + "loader = DataLoader(TensorDataset(x, y), collate_fn=list)\n")
    loader = script.tree.body[-1]
    assert isinstance(loader, ast.Assign) and isinstance(loader.value, ast.Call)
    assert dimensions_of_batches(loader.value, script, (script,)) == ()
