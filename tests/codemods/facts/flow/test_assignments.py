"""Assignments: what names, attributes and items hold afterwards."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided
from tests.codemods.plain.test_followed import plain, training

STEP = "        optimizer.step()\n"


@pytest.mark.parametrize(
    "lines",
    [
        "        total += loss.item()\n",
        "        a, *b = 1, 2, 3\n        del a\n",
        "        seen = {}\n        seen['shape'] = x.shape[1:]\n        print(seen)\n",
    ],
)
def test_what_is_assigned_is_known_afterwards(lines: str) -> None:
    assert reasons(TRAINING.replace(STEP, STEP + lines)) == []


@pytest.mark.parametrize(
    ("lines", "saved"),
    [
        ("        kept, *_ = [x, 1]\n", "kept"),
        ("        seen = {}\n        seen['x'] = x\n", "seen['x']"),
        ("        a = b = x\n", "b"),
        ("        part: torch.Tensor = x\n", "part"),
    ],
)
def test_samples_are_known_by_what_they_are_assigned_to(lines: str, saved: str) -> None:
    found = followed(TRAINING.replace(STEP, f"{STEP}{lines}        torch.save({saved}, 'x.pt')\n")).found
    assert [(ast.unparse(node), *(each.kind for each in read)) for node, read in found.reductions.items()] == [
        (saved, "rows")
    ]


def test_samples_that_a_model_keeps_cannot_be_saved() -> None:
    assert reasons(TRAINING.replace(STEP, f"{STEP}        model.kept = x\n        torch.save(model.kept, 'x.pt')\n"))


@pytest.mark.parametrize(
    ("mask", "fine"),
    [("x > 0.5", True), ("y", False), ("(x > 0.5) if len(sys.argv) > 1 else y", False)],
)
def test_what_stands_in_another_tensor_where_a_mask_says_so(mask: str, fine: bool) -> None:
    takes = f"mask = {mask}\n        z = x * 0\n        z[mask] = x[mask]\n        loss = F.cross_entropy(model(z), y)"
    source = "import sys\n" + TRAINING.replace("loss = F.cross_entropy(model(x), y)", takes)
    assert (undivided(source) == []) is fine


@pytest.mark.parametrize("op", ["*=", "+=", "-=", "/="])
def test_what_a_group_of_parameters_is_changed_by_is_that_of_all_ranks(op: str) -> None:
    """Each rank would have a learning rate of its own."""
    change = f"for group in optimizer.param_groups:\n            group['lr'] {op} loss.item()"
    code = plain(training(step=f"optimizer.step()\n        {change}")).code
    assert f"group['lr'] {op} mean_over_ranks(loss.item())" in code


NOISY = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        return self.out(F.dropout(x))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
MEASURED = """\
found = 0
with torch.no_grad():
    for x, y in test_loader:
        found += model(x).mean(dim=0).numpy()
n, text, product = 0, "[", 1
for each in found:
    {}
"""


@pytest.mark.parametrize(
    ("adds", "reads", "fine"),
    [
        ("n += 1", "print(n)", True),
        ('text += " {:.3f}".format(each)', "print(text)", True),
        ("n += each", "print(n)", True),
        ("n += 1", "(n * F.cross_entropy(model(x), y)).backward()", False),
        ("product *= 2", "(product * F.cross_entropy(model(x), y)).backward()", False),
        ("n += float(y.float().mean())", "print(n)", True),  # of the evaluation, which every rank has whole
    ],
)
def test_what_a_loop_over_drawn_numbers_adds_up_is_no_sum_over_ranks(adds: str, reads: str, fine: bool) -> None:
    """Nothing says that it goes as many turns on each rank, and what each adds up is not a part of a sum."""
    found = followed(NOISY + TRAINING + MEASURED.format(adds) + reads + "\n")
    assert not found.found.reductions and (not found.problems) is fine


def test_what_a_loop_over_drawn_numbers_adds_up_of_a_batch_is_refused() -> None:
    noise = "        for each in torch.rand(3):\n            total += loss.item()\n            print(total)\n"
    assert reasons(NOISY + TRAINING + noise)


STEPS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8, 2)
        self.out = nn.Linear(8, 3)
    def forward(self, x):
        outputs, (hidden, cell) = self.rnn(x.unsqueeze(0).repeat(3, 1, 1))
        h = hidden[-1, :, :]
        outputs = outputs * 1
        {}
        return self.out(outputs[0, :, :])
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("adds", "fine"),
    [
        *(("outputs[0, :, :] += h", True), ("outputs[0] *= h", True), ("outputs[-1, :, 1:] -= h[:, 1:]", True)),
        *(("outputs[0, :, :] += 1", True), ("outputs[0, :, :] += h.mean()", False), ("outputs += h", False)),
        *(("outputs[0, :4, :] += h", False), ("outputs[0, :, :] += h.mean(0)", False), ("outputs[:1] += h", False)),
    ],
)
def test_one_of_the_steps_that_lie_before_the_samples_gets_something_added(adds: str, fine: bool) -> None:
    assert (undivided(STEPS.format(adds) + TRAINING) == []) is fine
