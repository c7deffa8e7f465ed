"""The script to verify, and what its conversion changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.files import BadInput
from ddpify.verify.program import converted, reached

TRAIN = """\
import torch
from net import build
from torch.utils.data import DataLoader, TensorDataset

model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


def test_a_script_with_its_modules(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    (tmp_path / "net.py").write_text("import torch\ndef build():\n    return torch.nn.Linear(4, 1)\n")
    program = reached(script)
    assert {path.name for path in program.files} == {"train.py", "net.py"} and not program.changed
    changed = converted(str(script), "cpu").changed
    assert {path.name for path in changed} == {"train.py"}
    assert b"ddpify_runtime" in next(iter(changed.values()))


def test_what_trains_nothing_cannot_be_verified(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(3)\n")
    with pytest.raises(BadInput):
        converted(str(script), "cpu")
