"""Meters in the plain style: brought together where they are read (DDP628), where all reads are known."""

from pathlib import Path

import pytest
from ddpify_codemods import convert

METER = """\
import copy
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

class Meter{bases}:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val, self.avg = 0, 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
        {update}

{shown}
{code}

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = Meter()
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), len(x))
    {read}
"""
SHOWN = """\
    def __str__(self):
        return f"{self.avg:.3f}"
"""
UPDATED = "self.avg = sum_over_ranks(self.sum) / sum_over_ranks(self.count)"


def _converted(read: str, code: str = "", bases: str = "", update: str = "pass", shown: str = "") -> str:
    path = Path("train.py")
    text = METER.format(read=read, code=code, bases=bases, update=update, shown=shown).replace(
        "self.val, self.avg = 0, 0", "self.val = 0\n        self.avg = 0"
    )
    result = convert({path: text}, "cpu", style="plain")[path]
    assert not [finding for finding in result.findings if finding.severity == "refused"]
    return result.code


@pytest.mark.parametrize(
    ("read", "becomes"),
    [
        ("print(losses.avg)", "print(losses.over_ranks().avg)"),
        (
            "print(losses.avg, losses.avg)",
            "whole_losses = losses.over_ranks()\n    print(whole_losses.avg, whole_losses.avg)",
        ),
        ('print("{a.avg}".format(a=losses))', 'print("{a.avg}".format(a=losses.over_ranks()))'),
        ("if losses.avg < 1: break", "if losses.over_ranks().avg < 1: break"),
    ],
)
def test_a_meter_is_brought_together_where_it_is_read(read: str, becomes: str) -> None:
    code = _converted(read)
    assert becomes in code
    assert "        self.val = val\n" in code
    assert "    def over_ranks(self):\n" in code


def test_a_meter_without_numbers_keeps_the_value_that_it_begins_with() -> None:
    code = _converted("print(losses.avg)")
    assert f"        with contextlib.suppress(ZeroDivisionError):  # nothing was added yet\n{' ' * 12}meter.avg" in code
    assert "import contextlib\n" in code


def test_an_object_that_shows_itself_is_brought_together_there() -> None:
    assert 'return f"{self.over_ranks().avg:.3f}"' in _converted("print(losses)", shown=SHOWN)


def test_what_rank_0_logs_is_brought_together_in_a_line_before() -> None:
    code = _converted('writer.add_scalar("loss", losses.avg, epoch)', 'writer = SummaryWriter("runs")')
    assert "    whole_losses = losses.over_ranks()\n    if dist.get_rank() == 0:\n" in code


@pytest.mark.parametrize(
    "given",
    [
        {"read": "print(vars(losses), losses.avg)"},
        {"read": "print(losses.__dict__, losses.avg)"},
        {"read": "print(copy.deepcopy(losses).avg, losses.avg)"},
        {"read": "print(getattr(losses, 'avg'))"},
        {"read": "losses.avg = losses.avg / 2; print(losses.avg)"},
        {"read": "print(losses.avg)", "bases": "(dict)"},
        {"read": "print(losses.avg)", "code": "class Other(Meter):\n    pass"},
        {"read": "print(losses.avg)", "update": "self.sum += val * n"},
        {"read": "print(losses.avg)", "shown": SHOWN},
        {"read": "torch.save(str(losses), 'loss.pt')", "shown": SHOWN},
        {"read": "print(losses.avg)", "code": "def unseen(meter):\n    return meter.avg"},
    ],
)
def test_where_a_read_may_be_missed_each_update_brings_it_together(given: dict[str, str]) -> None:
    assert UPDATED in _converted(**given)
