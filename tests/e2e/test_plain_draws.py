"""What is decided by numbers that each rank draws for itself, plain: all ranks decide as rank 0 does, and stay in step.

Nothing is switched off here that draws: one process would draw other numbers, so that it is no measure.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.e2e import harness
from tests.e2e.fixtures import Fixture
from tests.e2e.test_plain import of_fixture

HEAD = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
test_set = TensorDataset(torch.rand(47, 4), torch.randint(3, (47,)))
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=7)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
"""
EPOCHS = """\
for epoch in range(8):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x{noise}), y)
        optimizer.zero_grad()
        loss.backward()
        {step}
"""
# Its largest distance cannot be added up, so that every rank goes through it as a whole; dropout is not switched off.
EVALUATES = """\


def spread(loader):
    largest = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            largest = max(largest, torch.cdist(out, out).max().item())
    return largest


class EarlyStopping:
    def __init__(self):
        self.best, self.waited = 0.0, 0

    def __call__(self, value):
        self.waited = 0 if value > self.best else self.waited + 1
        self.best = max(value, self.best)
        return self.waited > 2


stopping = EarlyStopping()
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0, factor=0.5)
"""
DECIDES = """\
    value = spread(test_loader)
    scheduler.step(value)
    print(epoch, value, optimizer.param_groups[0]["lr"])
    if value > 1.0 and epoch > 1:
        torch.save({"epoch": epoch, "value": value, "state": model.state_dict()}, "last.pt")
    if stopping(value):
        break
print("done")
"""
TRAINING = EPOCHS.format(noise="", step="optimizer.step()")
# Its data set draws noise for each sample, and nothing else draws.
NOISY = """\


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return len(test_set)

    def __getitem__(self, index):
        x, y = test_set[index]
        return x + torch.randn(4), y


test_loader = DataLoader(Noisy(), batch_size=7)
"""
# Each rank goes its own way for each of its samples, and through what it writes, of any length.
OWN_WAYS = """\


def written(longest):
    row, letters = torch.zeros(1, 4), []
    while True:
        with torch.no_grad():
            letter = torch.multinomial(model(row).softmax(1), 1)
        if letter[0, 0] == 2 or len(letters) > longest:
            return letters
        letters.append(letter[0, 0].item())
        row = torch.cat([row[:, 1:], letter.float() / 3], 1)


def measured(loader):
    right, by_class, seen = [], {label: [] for label in range(3)}, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            if out.sum() > 1.0:
                continue
            seen += len(written(20)) if out[0, 0] > 0 else 1
            for i in range(len(out)):
                label = int(y[i])
                if out[i].argmax() == label and out[i].max() > 0.1:
                    right.append(out[i].max().item())
                else:
                    by_class[label].append(out[i].min().item())
    return len(right), [len(by_class[label]) for label in by_class], seen


"""
DECIDES_BY_THEM = """\
    right, counts, seen = measured(test_loader)
    print(epoch, right, counts, seen, len(written(5)))
    if right > 20:
        optimizer.param_groups[0]["lr"] *= 0.9
    if max(counts) > 12 and seen > 4:
        optimizer.param_groups[0]["lr"] *= 0.8
print("done")
"""
PROGRAMS = {
    "each sample, and each letter": HEAD + NOISY + OWN_WAYS + TRAINING + DECIDES_BY_THEM,
    "an evaluation that drops": HEAD + EVALUATES + TRAINING + DECIDES,
    "samples that are drawn": HEAD.replace("torch.nn.Dropout(0.5), ", "") + NOISY + EVALUATES + TRAINING + DECIDES,
    "a step at times": HEAD
    + EPOCHS.format(
        noise=" + 0.1 * torch.randn_like(x)",
        step="factor = 0.3 if torch.rand(1).item() < 0.5 else 0.2\n        optimizer.param_groups[0]['lr'] = factor\n"
        "        if torch.rand(1).item() < 0.9 and torch.rand(1) < 0.8:\n            optimizer.step()",
    )
    + 'print("done")\n',
}


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ranks_decide_as_rank_0_does(name: str, ranks: int, tmp_path: Path) -> None:
    (tmp_path / "before.py").write_text(PROGRAMS[name])
    fixture = Fixture("program", tmp_path, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    sources = of_fixture(fixture, "cpu")
    assert b"from_rank_0(" in sources["before.py"]
    run = harness.run_sources(fixture, sources, ranks)
    assert run.rc == 0, run.stderr
    assert run.stdout.endswith("done\n")
    first = run.steps(0)
    assert len(first) > 8
    for rank in range(1, ranks):
        other = run.steps(rank)
        assert [step.rates for step in other] == [step.rates for step in first]
        for step, of_first in zip(other, first, strict=True):
            pairs = zip(step.params, of_first.params, strict=True)
            assert all(np.array_equal(mine[0], theirs[0]) and mine[1:] == theirs[1:] for mine, theirs in pairs)
