from __future__ import annotations

import inspect

import torch
from ddpify_codemods.facts.torch_optimizers import ARGUMENTS


def test_the_arguments_are_those_of_torch() -> None:
    classes = {name: kind for name, kind in vars(torch.optim).items() if inspect.isclass(kind)}
    known = {name for name, kind in classes.items() if issubclass(kind, torch.optim.Optimizer)} - {"Optimizer", "LBFGS"}
    assert set(ARGUMENTS) == known
    for name, arguments in ARGUMENTS.items():
        there = [*inspect.signature(classes[name]).parameters][1:]
        assert tuple(there[: len(arguments)]) == arguments
