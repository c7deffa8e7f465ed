"""What is made of packed sequences is as long as the longest of a rank's samples, unless it is told a length."""

from __future__ import annotations

import pytest
from ddpify_codemods.result import Result

from tests.codemods.plain.test_followed import plain, refusals

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, hidden = self.rnn(packed)
        {}


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(48, 9, 8), torch.randint(1, 9, (48,)), torch.randint(2, (48,)))
for x, lengths, y in DataLoader(data, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x, lengths), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PADS = "outputs, _ = pad_packed_sequence(packed, batch_first=True)\n        "


@pytest.mark.parametrize(
    "body",
    [
        "return self.out(hidden[-1])",
        PADS + "return self.out(hidden[-1])",
        PADS + "return self.out(outputs[torch.arange(len(x)), lengths - 1])",
        PADS.replace(")\n", ", total_length=x.size(1))\n") + "return self.out(outputs.mean(1))",
    ],
)
def test_what_is_of_each_sample(body: str) -> None:
    assert not refusals(plain(PROGRAM.format(body)))


def test_without_batch_first_samples_lie_behind_the_steps() -> None:
    steps_first = "outputs, _ = pad_packed_sequence(packed)\n        return self.out(outputs[{}])"
    assert not refusals(plain(PROGRAM.format(steps_first.format("-1"))))
    assert refusals(plain(PROGRAM.format(steps_first.format(":, -1"))))


@pytest.mark.parametrize(
    "body",
    [
        PADS + "return self.out(outputs.mean(1))",
        PADS + "return self.out(outputs)[:, -1]",
        PADS.replace("=True", "=self.rnn.batch_first") + "return self.out(outputs.mean(1))",
        "return self.out(pad_packed_sequence(packed, batch_first=True)[0].max(1)[0])",
        "outputs, _ = pad_packed_sequence(packed)\n        return self.out(outputs.mean(0))",
    ],
)
def test_what_depends_on_the_longest_is_as_long_as_that_of_all_ranks(body: str) -> None:
    result = plain(PROGRAM.format(body))
    assert not refusals(result)
    assert "total_length=max_over_ranks(len(packed.batch_sizes))" in result.code
    assert "is_grad_enabled" not in result.code  # there is no evaluation
    assert "differentiable_mean" not in result.code  # it is one over the steps of each sample


EVALUATION = """\
total = 0.0
for x, lengths, t in DataLoader(data, batch_size=12):
    with torch.no_grad():
        y = pack_padded_sequence(t, lengths, batch_first=True, enforce_sorted=False).data
        total += F.cross_entropy(model(x, lengths), y).item()
print(total)
"""
STEPS = PROGRAM.replace("F.cross_entropy(model(x, lengths), y)", "{loss}")
STEPS = STEPS.replace("{}\n", "return self.out(packed.data)\n").replace("lengths, y in", "lengths, t in")
STEPS = STEPS.replace("torch.randint(2, (48,))", "torch.randint(2, (48, 9))")
TARGETS = "pack_padded_sequence(t, lengths, batch_first=True, enforce_sorted=False).data"
CE = "F.cross_entropy(model(x, lengths), y)"


def steps(loss: str, targets: str = TARGETS) -> Result:
    """A script that trains by a loss over the steps of packed sequences."""
    return plain(STEPS.replace("    loss = ", f"    y = {targets}\n    loss = ").format(loss=loss))


@pytest.mark.parametrize("loss", [CE, CE.replace("F.cross_entropy", "nn.CrossEntropyLoss()")])
@pytest.mark.parametrize("targets", [TARGETS, TARGETS.replace(".data", "[0]")])
def test_a_mean_over_steps_weighs_as_much_as_a_rank_has(loss: str, targets: str) -> None:
    result = steps(loss, targets)
    assert not refusals(result)
    assert f"loss = {loss.replace('model', 'ddp_model')} * len(y) / mean_over_ranks(len(y))\n" in result.code


def test_a_sum_over_steps_is_one_of_all_ranks() -> None:
    result = steps(CE.replace("y)", "y, reduction='sum')"))
    assert not refusals(result) and "len(y)" not in result.code


def test_an_evaluation_over_steps_is_not_divided_by_samples() -> None:
    result = plain(STEPS.format(loss=CE.replace("y)", "t[:, 0])")) + EVALUATION)
    assert "Subset(data" not in result.code


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        ("model(x, lengths).mean()", TARGETS),
        (CE, f"{TARGETS}[1:]"),
        (CE.replace("y)", "y.random_(2))"), TARGETS),
        ("F.mse_loss(model(x, lengths)[1:], y[1:])", TARGETS),
    ],
)
def test_other_numbers_of_steps_are_refused(loss: str, targets: str) -> None:
    assert refusals(steps(loss, targets))
