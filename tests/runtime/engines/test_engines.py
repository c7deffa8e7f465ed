"""One engine's face: an engine is a file with the name of its backend and its devices, and nothing else knows of it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import ddpify_runtime
import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, engines, init_process_group
from ddpify_runtime.agreement import random_states
from ddpify_runtime.process_group import destroy_process_group
from torch import nn
from torch.utils.data import TensorDataset

from tests.forked import free_port
from tests.runtime.processes import run

RUNTIME = Path(ddpify_runtime.__file__).parent

# Devices of the host whose programs are recorded: their tensors go the ways of an accelerator that compiles.
MADE_UP = """
import time

from . import native


class Engine(native.Engine):
    records = True
    seed, said = 7, []

    def start(self, backend, init_method):
        self.said.append(f"start {backend}")
        found = super().start("gloo", init_method)
        return found

    def steps(self, batches):
        for batch in batches:
            self.said.append("step")
            yield batch

    def random_state(self):
        return self.seed

    def set_random_state(self, state):
        self.seed = state

    def intercepted(self, result, args, kwargs):
        self.said.append("intercepted")
        return result

    def report(self, kind, error, trace):
        print(f"made up: {error}")


ENGINE = Engine()
"""


def train(backend: str, folder: str) -> tuple[list[torch.Tensor], list[str], int]:
    """Parameters after three epochs, what the engine has been asked, and the rows of the last forward."""
    engines.__path__.append(folder)
    importlib.invalidate_caches()
    rows = 0

    class Net(nn.Sequential):
        def forward(self, input: Any) -> Any:
            nonlocal rows
            rows = len(input)
            return super().forward(input)  # type: ignore[no-untyped-call]

    init_process_group(backend)
    torch.manual_seed(0)
    net = Net(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(29, 5), torch.randint(3, (29,)))
    for _ in range(3):
        for x, y in DataLoader(data, batch_size=8, shuffle=True):  # the last batch has 5 rows
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    said = list(getattr(engines.here(), "said", []))
    destroy_process_group()
    return [value.detach().clone() for value in model.state_dict().values()], said, rows


def test_an_engine_is_one_file(tmp_path: Path) -> None:
    """The file is found by its name, `cpu`, and trains on two processes what one process trains without it."""
    (tmp_path / "cpu.py").write_text(MADE_UP, encoding="utf-8")
    (tmp_path / "none").mkdir()
    ((alone, _, _),) = run(1, train, "gloo", str(tmp_path / "none"))
    native = run(2, train, "gloo", str(tmp_path / "none"), port=int(free_port()))
    assert [rows for _, _, rows in native] == [3, 2]
    for found, said, rows in run(2, train, "cpu", str(tmp_path), port=int(free_port())):
        for one, other in zip(alone, found, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
        assert said[0] == "start cpu" and said.count("step") == 12 and "intercepted" in said
        assert rows == 5  # which do not divide by 2, as its devices need


def decided(folder: str) -> tuple[bool, bool, dict[str, Any], bool]:
    engines.__path__.append(folder)
    importlib.invalidate_caches()
    before = engines.of(torch.device("cpu")).records, engines.here().records
    engines.use("cpu")
    states = random_states.read()
    key = random_states.key()
    engines.here().seed = 8  # type: ignore[attr-defined]
    moved = random_states.key() != key
    random_states.write(states)
    return *before, states, moved and random_states.key() == key


def test_a_tensor_decides_by_its_device_and_a_process_by_its_backend(tmp_path: Path) -> None:
    (tmp_path / "cpu.py").write_text(MADE_UP, encoding="utf-8")
    ((of_device, of_process, states, follows),) = run(1, decided, str(tmp_path))
    assert of_device and not of_process
    assert states["device"] == 7 and follows


@pytest.mark.parametrize("name", ["gloo", "nccl", "cuda", "cpu", "meta", "cpu:gloo,cuda:nccl", ""])
def test_without_a_file_it_is_torchs_own(name: str) -> None:
    assert engines.named(name) is engines.native.ENGINE


def test_nothing_else_asks_which_engine_it_is() -> None:
    """XLA is named in its own folder, in what its scripts import, and in messages."""
    apart = {
        RUNTIME / "xla.py",
        RUNTIME / "torch_xla_internals.py",
        *RUNTIME.glob("engines/**/*.py"),
        *RUNTIME.glob("devtools/*.py"),
    }
    for path in set(RUNTIME.rglob("*.py")) - apart:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                assert node.value not in ("xla", "torch_xla"), f"{path}:{node.lineno}"
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("torch_xla") for alias in node.names), f"{path}:{node.lineno}"
            if isinstance(node, ast.ImportFrom):
                assert ".xla" not in f".{node.module}", f"{path}:{node.lineno}"
