"""Programs in the plain style."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods import convert

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
