"""Noise on the way to samples, plain: each rank draws its own, in the main process and in workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.e2e.fixtures import Fixture
from tests.e2e.harness import run_sources, torchrun

PROGRAM = """\
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Shift:
    def __call__(self, image):
        drawn = {draw}
        name = f"drawn{{os.environ['RANK']}}-{{os.getpid()}}.txt"
        os.write(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), f"{{drawn:.6f}}\\n".encode())
        return image + drawn


class Data(Dataset):
    def __init__(self, transform):
        self.images, self.labels, self.transform = torch.rand(48, 4), torch.randint(3, (48,)), transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i]).float(), self.labels[i]


def seed_worker(worker):
    np.random.seed(7 + worker)


torch.manual_seed(3)
random.seed(3)
np.random.seed(3)
loader = DataLoader(Data(Shift()), batch_size=8, shuffle=True{workers})
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DRAWS = ["random.random()", "np.random.rand()", "torch.rand(()).item()"]


@pytest.mark.parametrize(
    ("draw", "workers"),
    [
        *((draw, "") for draw in DRAWS),
        ("random.random()", ", num_workers=1"),
        ("np.random.rand()", ", num_workers=1, worker_init_fn=seed_worker"),
    ],
)
def test_no_rank_draws_what_another_one_draws(draw: str, workers: str, tmp_path: Path) -> None:
    source = PROGRAM.format(draw=draw, workers=workers)
    result = convert({Path("before.py"): source}, "cpu", style="plain")[Path("before.py")]
    assert not [each for each in result.findings if each.severity == "refused"]
    (tmp_path / "before.py").write_text(source)
    fixture = Fixture("program", tmp_path, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    run = run_sources(fixture, {"before.py": result.code.encode()}, 2, limit=60, start=torchrun)
    assert not run.rc, run.stderr
    drawn = ["".join(text for name, text in run.files.items() if name.startswith(f"drawn{rank}")) for rank in (0, 1)]
    first, second = (each.split() for each in drawn)
    assert len(first) == len(second) == 48 and not {*first} & {*second}
