"""Hooks that a model's own library sets belong to its forward; those of others are there to see something."""

from __future__ import annotations

import sys
import sysconfig
import warnings
from types import ModuleType
from typing import Any

import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from ..processes import run


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def double(module: nn.Module, given: Any, output: Tensor) -> Tensor:
    return 2 * output


def train(library_of_model: str, library_of_hook: str) -> tuple[Tensor, list[str]]:
    for name in ("pretended", "pretended_too"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__file__ = f"{sysconfig.get_path('purelib')}/{name}/__init__.py"
    Model.__module__, double.__module__ = library_of_model, library_of_hook
    torch.manual_seed(0)
    model = DistributedDataParallel(Model())
    model.layers[0].register_forward_hook(double)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(9, 5)).square().mean().backward()
            optimizer.step()
    return nn.utils.parameters_to_vector(model.parameters()).detach(), [str(each.message) for each in said]


@pytest.mark.parametrize(
    ("library_of_model", "library_of_hook", "divided"),
    [
        ("pretended.models", "pretended.utils", True),
        ("pretended", "pretended_too", False),
        ("script", "script", False),
        ("script", "pretended", False),
    ],
)
def test_hooks_of_its_own_library_are_tried_with_a_model(
    library_of_model: str, library_of_hook: str, divided: bool
) -> None:
    ((alone, _),) = run(1, train, library_of_model, library_of_hook)
    for found, said in run(2, train, library_of_model, library_of_hook):
        assert (found - alone).norm() <= 1e-6 * alone.norm()
        assert bool(said) is not divided, said
