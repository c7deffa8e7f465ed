"""Runs that are killed, by a real SIGKILL, and go on: they end with the parameters of a run that nothing disturbed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ddpify_codemods import convert

from ddpify.verify import processes
from tests import forked

DIES = Path(__file__).with_name("pretend") / "dies.py"
LIMIT = 300

# A state in every place: Adam, a scheduler, dropout, augmentation, a list, an object, the best loss so far.
RICH = """\
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        made = torch.Generator().manual_seed(1)
        self.x, self.y = torch.randn(60, 6, generator=made), torch.randint(0, 3, (60,), generator=made)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + 0.1 * torch.randn(6) * random.random(), self.y[index]


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total += value
        self.count += 1


def train(model, loader, optimizer, losses):
    model.train()
    average, worst = Average(), 0.0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        average.update(loss.item())
        worst = max(worst, loss.item())
        losses.append(loss.item())
    return average.total / average.count, worst


def main():
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=WORKERS)
    losses, best = [], float("inf")
    for epoch in range(EPOCHS):
        mean, worst = train(model, loader, optimizer, losses)
        scheduler.step()
        best = min(best, mean)
    torch.save([*model.state_dict().values(), torch.tensor([best, worst, *losses])], "end.pt")


if __name__ == "__main__":
    random.seed(3)
    torch.manual_seed(3)
    main()
"""
PLAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
data = TensorDataset(torch.randn(60, 6), torch.randn(60, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
torch.save(list(model.state_dict().values()), "end.pt")
"""

# Loops whose rounds are no items: tests, an iterator that is begun anew, one that never ends.
HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
data = TensorDataset(torch.randn(60, 6), torch.randn(60, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.2), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def update(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


step, seen = 0, 0.0
"""
LOOPS = {
    "while": """\
def get_batch():
    rows = torch.randint(60, (8,))
    return data.tensors[0][rows], data.tensors[1][rows]


x, y = get_batch()
while True:
    seen += update(x, y)
    x, y = get_batch()
    step += 1
    if step >= 24:
        break
""",
    "while around for": """\
while step < 24:
    epoch_loss = 0.0
    for x, y in loader:
        epoch_loss += update(x, y)
        step += 1
        if step >= 24:
            break
    seen += epoch_loss
""",
    "next": """\
batches = iter(loader)
while step < 24:
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(loader)
        x, y = next(batches)
    seen += update(x, y)
    step += 1
""",
    "cycle": """\
def cycle(loader):
    while True:
        for batch in loader:
            yield batch


batches = cycle(loader)
for step in range(24):
    x, y = next(batches)
    seen += update(x, y)
""",
    "for over cycle": """\
def cycle(loader):
    while True:
        for batch in loader:
            yield batch


for step, (x, y) in enumerate(cycle(loader)):
    seen += update(x, y)
    if step >= 23:
        break
""",
    "folds": """\
for fold in range(3):
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.2), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x, y in loader:
        seen += update(x, y)
    seen += float(model[0].weight.sum())
""",
    "global": """\
def test(epoch):
    global seen
    seen = max(seen, epoch + float(model[0].weight.sum()))


for epoch in range(3):
    for x, y in loader:
        update(x, y)
    test(epoch)
""",
}
OWN = """\
import os

first = 0
if os.path.exists("own.pt"):
    kept = torch.load("own.pt")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    first, seen = kept["epoch"] + 1, kept["seen"]
for epoch in range(first, 4):
    for x, y in loader:
        seen += update(x, y)
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "seen": seen}
    torch.save(kept, "own.pt")
"""
END = 'torch.save([*model.state_dict().values(), torch.tensor([step, seen])], "end.pt")\n'


def written(
    folder: Path, code: str, epochs: int = 3, every: int = 1, workers: int = 0, optimizer_sharding: bool = False
) -> Path:
    """A folder with the script, converted for checkpoints every so many steps, and what kills it."""
    folder.mkdir()
    code = code.replace("EPOCHS", str(epochs)).replace("WORKERS", str(workers))
    path = Path("train.py")
    converted = convert({path: code}, "cpu", resume="checkpoints", optimizer_sharding=optimizer_sharding)[path].code
    assert "every_seconds=600" in converted
    converted = converted.replace("every_seconds=600", f"every_steps={every}")
    (folder / "train.py").write_text(f"import dies\n{converted}")
    shutil.copy(DIES, folder)
    return folder


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "", **more}


def start(folder: Path, world_size: int, *options: str, **more: str) -> int:
    """Start the script under torchrun (alone: by Python itself); its exit code."""
    launcher = [*processes.torchrun(world_size), *options] if world_size > 1 else []
    with (folder / "stderr").open("a") as said:
        ran = subprocess.run(
            [sys.executable, *launcher, "train.py"], cwd=folder, env=environment(**more), timeout=LIMIT, check=False,
            stdout=subprocess.DEVNULL, stderr=said,
        )  # fmt: skip
    return ran.returncode


def undisturbed(folder: Path, world_size: int) -> list[torch.Tensor]:
    """What a run of its own ends with, in forked processes."""
    python = (sys.executable, "torch", "torch._dynamo")
    code, _, error = forked.start(["train.py"], world_size, folder, environment(), LIMIT, python)
    assert code == 0, error
    return end(folder)


def end(folder: Path) -> list[torch.Tensor]:
    return list(torch.load(folder / "end.pt"))


def assert_equal(ended: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(ended) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(ended, expected, strict=True))


def went_on(folder: Path) -> int:
    return (folder / "stderr").read_text().count("ddpify: goes on from")


def test_a_killed_worker(tmp_path: Path) -> None:
    """torchrun starts all ranks again, which go on in the middle of an epoch."""
    expected = undisturbed(written(tmp_path / "whole", RICH), 2)
    folder = written(tmp_path / "killed", RICH, every=2)
    code = start(folder, 2, "--max-restarts", "1", DIES="worker", DIES_AT="13", DIES_RANK="1")
    assert (code, went_on(folder)) == (0, 1), (folder / "stderr").read_text()
    assert_equal(end(folder), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("at", ["5", "13", "20"])
@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("loop", LOOPS)
def test_loops(tmp_path: Path, loop: str, world_size: int, at: str) -> None:
    code = HEAD + LOOPS[loop] + END
    expected = undisturbed(written(tmp_path / "whole", code), world_size)
    folder = written(tmp_path / "killed", code, every=3)
    assert start(folder, world_size, DIES="all", DIES_AT=at) != 0
    assert start(folder, world_size) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 1
    assert_equal(end(folder), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("goes_on_at_first", [False, True])
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_checkpoint_of_its_own(tmp_path: Path, world_size: int, goes_on_at_first: bool) -> None:
    """The script finds a file of its own when it is started again, or has found an older one at first."""
    code = HEAD + OWN + END
    whole, folder = written(tmp_path / "whole", code), written(tmp_path / "killed", code, every=3)
    if goes_on_at_first:
        short = written(tmp_path / "short", code.replace("range(first, 4)", "range(first, 1)"))
        undisturbed(short, world_size)
        for each in (whole, folder):
            shutil.copy(short / "own.pt", each)
    expected = undisturbed(whole, world_size)
    assert start(folder, world_size, DIES="all", DIES_AT="13") != 0
    assert torch.load(folder / "own.pt")["epoch"] == (1 if goes_on_at_first else 0)
    assert start(folder, world_size) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 1
    assert_equal(end(folder), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("what", "at", "world_size"),
    [
        *((what, at, size) for what, at in [("worker", "11"), ("all", "20"), ("all", "write")] for size in (1, 2, 3)),
        *(("agent", "5", size) for size in (2, 3)),  # alone there is no agent
    ],
)
def test_killed(tmp_path: Path, what: str, at: str, world_size: int, workers: int) -> None:
    expected = undisturbed(written(tmp_path / "whole", RICH, workers=workers), world_size)
    folder = written(tmp_path / "killed", RICH, workers=workers)
    assert start(folder, world_size, DIES=what, DIES_AT=at) != 0
    assert start(folder, world_size) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 1
    assert_equal(end(folder), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (2, 1), (1, 2)])
def test_another_number_of_processes(tmp_path: Path, sizes: tuple[int, int]) -> None:
    expected = undisturbed(written(tmp_path / "whole", PLAIN), 1)
    folder = written(tmp_path / "killed", PLAIN)
    assert start(folder, sizes[0], DIES="all", DIES_AT="11") != 0
    assert start(folder, sizes[1]) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 1
    for one, other in zip(end(folder), expected, strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-6


@pytest.mark.nightly
def test_optimizers_whose_state_is_divided(tmp_path: Path) -> None:
    expected = undisturbed(written(tmp_path / "whole", RICH, optimizer_sharding=True), 2)
    folder = written(tmp_path / "killed", RICH, optimizer_sharding=True)
    assert start(folder, 2, DIES="all", DIES_AT="11") != 0
    assert start(folder, 2) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 1
    assert_equal(end(folder), expected)


@pytest.mark.nightly
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Twenty times in a row, everything, wherever it is."""
    expected = undisturbed(written(tmp_path / "whole", RICH, epochs=60), 2)
    folder = written(tmp_path / "killed", RICH, epochs=60)
    moments = random.Random(5)
    for _ in range(20):
        (folder / "died").unlink(missing_ok=True)
        seconds = f"{moments.uniform(0, 0.5):.3f}s"
        assert start(folder, 2, DIES="all", DIES_AT=seconds, DIES_RANK=moments.choice("01")) != 0
    assert start(folder, 2) == 0, (folder / "stderr").read_text()
    assert went_on(folder) == 20
    assert_equal(end(folder), expected)
