"""Where numbers of a rank's samples are read, they are brought together first."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation, reasons


@pytest.mark.parametrize(
    "line", ["print(loss.item())", "print(f'{loss:.3f}')", "history = [float(loss)]\n        print(history)"]
)
def test_a_loss_that_is_read_is_reduced(line: str) -> None:
    found = followed(f"{TRAINING}        {line}\n")
    assert found.problems == ()
    assert found.found.reductions or found.found.after


def test_what_nobody_reads_is_not() -> None:
    found = followed(TRAINING).found
    assert not found.reductions and not found.after


def test_a_sum_over_a_loop_is_reduced_behind_it() -> None:
    found = followed(f"{TRAINING}        total += loss.item()\nprint(total)").found
    assert {each.name for each in found.after} == {"total"}
    assert all(isinstance(each.at, ast.For) for each in found.after)


PRINTING = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        {}
        return self.out(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_sizes_that_are_printed_are_those_of_a_rank() -> None:
    for shown in (
        "print(x.shape)",
        "print('in', x.size(), x.size(0))",
        "print(f'{x.shape}')",
        "print('%s' % x.shape[0])",
    ):
        found = followed(PRINTING.format(shown) + TRAINING)
        assert not found.problems and found.found.sizes_shown, shown
    assert followed(TRAINING.replace("loss.backward()", "print(x.shape)\n        loss.backward()")).found.sizes_shown


def test_sizes_that_decide_and_numbers_that_are_printed_in_a_model_are_refused() -> None:
    for used in ("key = f'{x.shape}'", "print(x.mean())", "open(f'{x.shape}.txt', 'w')", "log(x.shape)"):
        source = "def log(shape):\n    if shape[0] > 3:\n        print(1)\n" + PRINTING.format(used)
        assert reasons(source + TRAINING), used


def test_sizes_that_an_evaluation_prints_are_those_of_all() -> None:
    assert "sharded" not in of_evaluation("print(x.shape)").status.values()
