"""A program whose data, model and prints are made while its files are imported trains what one process trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.verify import compare
from tests.e2e import harness
from tests.e2e.fixtures import Fixture

FILES = {
    "data.py": """\
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
data = TensorDataset(torch.randn(60, 4, dtype=torch.float64), torch.randn(60, 1, dtype=torch.float64))
train_set, test_set = random_split(data, [48, 12])
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=8)
with open("sizes.txt", "a") as file:
    file.write(f"{len(train_set)} {len(test_set)}\\n")
print("the data is made")
""",
    "net.py": """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "train.py": """\
import torch

from data import test_loader, train_loader
from net import model, optimizer

for epoch in range(2):
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        total = sum(torch.nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in test_loader)
    print(epoch, loss.item(), total)
""",
}


OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LATER = {
    "net.py": FILES["net.py"].replace(OPTIMIZER, ""),
    "train.py": FILES["train.py"].replace(
        "from net import model, optimizer\n", f"from net import model\n\n{OPTIMIZER}"
    ),
}


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("files", [FILES, FILES | LATER], ids=["with its optimizer", "the optimizer later"])
def test_what_is_made_while_files_are_imported(files: dict[str, str], ranks: int, tmp_path: Path) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    fixture = Fixture("imported", folder, "train.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    run = harness.run_converted_forked(fixture, ranks)
    differences = list(compare.equivalent(harness.run_original(fixture), run, ranks, fixture.tolerance))
    assert not differences, "\n".join([*differences, "--- stderr", run.stderr[-3000:]])
