"""What a library sums over ranks on finding a process group counts once: each rank has all of it already."""

from __future__ import annotations

from types import ModuleType

import ddpify_runtime
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, get_world_size
from torch import nn
from torch.utils.data import TensorDataset

from tests.forked import free_port
from tests.runtime.processes import run

# As torchmetrics 1.9 does it (metric.py: Metric, sync, _sync_dist; utilities/distributed.py: gather_all_tensors).
METRICS = """
import torch

def jit_distributed_available():
    return torch.distributed.is_available() and torch.distributed.is_initialized()

class Metric:
    def __init__(self, sync_on_compute=True, distributed_available_fn=None):
        self._to_sync = sync_on_compute
        self.distributed_available_fn = distributed_available_fn or jit_distributed_available
        self.total = torch.tensor(0.0)

    def update(self, value):
        self.total = self.total + torch.as_tensor(value, dtype=torch.float32)

    def compute(self):
        cache = self.total
        if self._to_sync and self.distributed_available_fn():
            parts = [torch.zeros_like(cache) for _ in range(torch.distributed.get_world_size())]
            torch.distributed.all_gather(parts, cache)
            self.total = torch.stack(parts).sum(0)
        value, self.total = self.total, cache
        return value
"""


def train() -> tuple[list[float], bool, bool]:
    metrics = ModuleType("metrics")
    exec(METRICS, metrics.__dict__)
    before, seen = metrics.Metric(), []  # of which one is made before there is a group, as modules do
    ddpify_runtime.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(22, 4), torch.arange(22) % 3)
    for _ in range(2):
        right, rows = metrics.Metric(), metrics.Metric()
        for x, y in DataLoader(data, batch_size=5, shuffle=True):
            output = model(x)
            loss = F.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            before.update(loss.detach() * len(x))
            right.update((output.argmax(1) == y).sum())
            rows.update(len(x))
        seen += [metric.compute().item() for metric in (before, right, rows)]
    known = get_world_size() > 1
    ddpify_runtime.destroy_process_group()
    return seen, known, dist.is_initialized()


def test_metrics_of_a_library_are_those_of_one_process() -> None:
    (alone, known, _), *_ = run(1, train)
    assert not known and alone[2] == 22
    for seen, known, later in run(2, train, port=int(free_port())):
        assert known and not later
        torch.testing.assert_close(torch.tensor(seen), torch.tensor(alone))


def ask() -> list[bool]:
    ddpify_runtime.init_process_group("gloo")
    question, answers = "import torch.distributed as dist\nanswer = dist.is_initialized()", []
    for name in ("__main__", "torch.nn.parallel", "timm.utils", "torchmetrics.metric"):
        module = ModuleType(name)
        exec(question, module.__dict__)
        answers.append(module.__dict__["answer"])

    @torch.compile(backend="eager", fullgraph=True)
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return x + dist.is_initialized()

    answers.append(bool(compiled(torch.zeros(()))))
    ddpify_runtime.destroy_process_group()
    return answers


def test_torch_and_the_script_are_told_the_truth_and_compiled_code_compiles() -> None:
    assert run(2, ask, port=int(free_port())) == [[True, True, False, False, False]] * 2
