"""What training adds up is divided by the samples that DistributedSampler has drawn (DDP605)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(65, 4), torch.randint(2, (65,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True{dropped})
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
size = len(train_loader.dataset)
for epoch in range(2):
    correct, total = 0, 0.0
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == y).sum().item()
        total += loss.item() * len(y)
    {shown}
"""
DRAWN = "len(train_loader.sampler) * dist.get_world_size()"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("print(100 * correct / len(train_loader.dataset))", "print(100 * correct / ({}))"),
        ("print(total / len(train_set))", "print(total / ({}))"),
        ("print(total / size)", "print(total / ({}))"),
        ("total /= size", "total /= {}"),
        ("print(correct / float(len(train_set)))", "print(correct / ({}))"),
    ],
)
def test_a_sum_of_training_is_divided_by_what_it_is_of(shown: str, expected: str) -> None:
    result = plain(SCRIPT.format(shown=shown, dropped=""))
    assert not refusals(result) and expected.format(DRAWN) in result.code


@pytest.mark.parametrize(
    ("shown", "dropped"),
    [
        ("print(correct / len(train_set))", ", drop_last=True"),
        ("print(correct, len(train_set))", ""),
        ("print(correct / 65)", ""),
        ("correct = 3\n    print(correct / len(train_set))", ""),
        ("print((correct + 1) / len(train_set))", ""),
    ],
)
def test_others_stay(shown: str, dropped: str) -> None:
    result = plain(SCRIPT.format(shown=shown, dropped=dropped))
    assert not refusals(result) and DRAWN not in result.code


def test_an_evaluation_is_divided_by_its_samples() -> None:
    shown = "correct = 0\n    with torch.no_grad():\n        for x, y in train_loader:\n"
    shown += "            correct += (model(x).argmax(1) == y).sum().item()\n    print(correct / len(train_set))"
    result = plain(SCRIPT.format(shown=shown, dropped=""))
    assert not refusals(result) and DRAWN not in result.code
