"""`torch.set_default_device("cuda")`: what is meant for the host stays there."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ddpify_runtime
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, DistributedSampler
from torch import Tensor, nn
from torch.utils._device import _device_constructors
from torch.utils.data import Dataset

from ddpify.verify.processes import RECORDER
from tests.runtime.default_device import DefaultDevice
from tests.runtime.processes import run

RUNTIME = Path(ddpify_runtime.__file__).parent
# Drawn as torch's own loaders and samplers draw them.
AS_TORCH = {("data_loader.py", "seed"), ("sampler.py", "_order")}


def made_without_device(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """In which function, and where, a tensor is made on the default device."""
    names = {function.__name__ for function in _device_constructors()}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            made = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
            given = {keyword.arg for keyword in call.keywords}
            if made and call.func.attr in names and not given & {"device", None}:  # type: ignore[attr-defined]
                yield function.name, call.lineno


def test_the_runtime_and_the_recorder_say_where_they_make_a_tensor() -> None:
    found = {
        (str(path.relative_to(folder)), name, line)
        for folder in (RUNTIME, RECORDER)
        for path in folder.rglob("*.py")
        for name, line in made_without_device(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {(path, name) for path, name, _ in found} == AS_TORCH


SEEN: list[int] = []  # samples in each call


class Rows(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 26

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor([float(index % 7), float(index % 5), 1.0]), index % 3


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 3, sparse=True)
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        SEEN.append(len(x))
        scores: Tensor = self.layers(x + self.words(x[:, 0].long()))
        return scores


def train(has_default: bool, workers: int = 0) -> tuple[list[float], int]:
    """The losses, and with how many samples the model was called at most in the last pass."""
    mode = DefaultDevice()
    generator = mode.generator.manual_seed(1)
    with mode if has_default else warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(0)
        data: Any = Rows()
        loader = DataLoader(data, 6, sampler=DistributedSampler(data), generator=generator, num_workers=workers)
        test_loader = DataLoader(data, 13, sampler=DistributedSampler(data, shuffle=False))
        model = DistributedDataParallel(Network())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            SEEN.clear()
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                losses += [F.cross_entropy(model(x), y).item() for x, y in test_loader]
            model.train()
        return [round(loss, 4) for loss in losses], max(SEEN)


def test_a_training_is_divided_and_the_same() -> None:
    ((expected, _),) = run(1, train, False)
    assert run(1, train, True) == [(expected, 13)]
    assert run(2, train, True) == [(expected, 7), (expected, 6)]


def test_with_workers_too() -> None:
    ((expected, _),) = run(1, train, False)
    assert run(2, train, True, 2) == [(expected, 7), (expected, 6)]
