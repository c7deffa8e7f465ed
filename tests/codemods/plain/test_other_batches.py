"""Functions that run over a loader in one call, and over a list in another, whose batches all ranks have."""

from __future__ import annotations

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(48, 4), torch.rand(48, 1))
test_set = TensorDataset(torch.rand(50, 4), torch.rand(50, 1))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run(loader, trains):
    total = 0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y, reduction="sum")
        if trains:
            optimizer.zero_grad()
            (loss / 12).backward()
            optimizer.step()
        total += loss.item()
    print(total)


def evaluate(loader):
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    print(total)


loader = DataLoader(train_set, batch_size=12)
test_loader = DataLoader(test_set, batch_size=7)
run(loader, True)
evaluate(test_loader)
"""


def test_a_training_that_also_goes_through_a_list() -> None:
    assert not refusals(plain(SCRIPT))
    (reason,) = refusals(plain(SCRIPT + "run(list(test_loader), False)\n"))
    assert "that of all in another" in reason


def test_an_evaluation_that_also_goes_through_a_list_is_whole() -> None:
    code = plain(SCRIPT).code
    assert code.count("sum_over_ranks(total)") == 2
    result = plain(SCRIPT + "evaluate([(torch.rand(50, 4), torch.rand(50, 1))])\n")
    assert not refusals(result) and result.code.count("sum_over_ranks(total)") == 1
    assert any("that of all in another" in each.message for each in result.findings)
