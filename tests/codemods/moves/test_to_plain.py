"""Programs in the plain style."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods import convert
from ddpify_codemods.rule import Finding

PATH = Path("train.py")
SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4, shuffle=True)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


def test_the_output_needs_torch_alone() -> None:
    code = convert({PATH: SCRIPT}, "cpu", style="plain")[PATH].code
    assert "ddpify" not in code
    for name in ("init_process_group", "DistributedSampler", "DistributedDataParallel", "destroy_process_group"):
        assert name in code


def test_what_neither_style_converts_is_said_alone() -> None:
    one_by_one = SCRIPT.replace("batch_size=4", "batch_size=1")
    assert [each.rule for each in _refused(one_by_one)] == ["DDP603"]
    gathers = one_by_one + "\ntorch.distributed.all_gather([torch.zeros(1)], torch.zeros(1))\n"
    assert [each.rule for each in _refused(gathers)] == ["DDP302"]


def _refused(source: str) -> list[Finding]:
    result = convert({PATH: source}, "cpu", style="plain")[PATH]
    assert result.code == source
    return [each for each in result.findings if each.severity == "refused"]
