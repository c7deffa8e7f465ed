"""What a training loop adds up where no checkpoint holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.followed import HEAD, TRAINING

PATH, OTHER = Path("train.py"), Path("state.py")
MADE = """\
import state
from state import kept, note
from torch.utils.data import Dataset, WeightedRandomSampler


class Count:
    steps = 0


class Rows(Dataset):
    def __init__(self):
        self.level = 1

    def reset(self):
        pass


def step():
    pass


rows, count, losses = Rows(), Count(), []
"""
STATE = "kept = []\nsteps = 0\n\n\ndef note(value):\n    kept.append(value)\n\n\ndef tell(value):\n    print(value)\n"


def problem(line: str) -> str:
    """Why a script that has a line in its inner loop could not go on."""
    program = {PATH: HEAD + MADE + TRAINING + f"        {line}\n", OTHER: STATE}
    found = [each for result in convert(program, "cpu", resume="kept").values() for each in result.findings]
    return "".join(each.message for each in found if each.severity == "refused")


@pytest.mark.parametrize(
    ("line", "holder"),
    [
        ("Count.steps += 1", "a class"),
        ("Count.steps = Count.steps + 1", "a class"),
        ("step.calls += 1", "a function"),
        ("optimizer.calls += 1", "an optimizer"),
        ("rows.level *= 2", "a data set"),
        ("rows.seen[0] = 3", "a data set"),
        ("state.steps += 1", "another file"),
        ("kept.append(1)", "another file"),
        ("note(1)", "another file"),
    ],
)
def test_what_a_checkpoint_does_not_hold(line: str, holder: str) -> None:
    assert f" is added up in {holder}, " in problem(line)


@pytest.mark.parametrize(
    "line",
    [
        "count.steps += 1",
        "losses.append(1)",
        "rows.level = epoch",
        "rows.reset()",
        "optimizer.param_groups[0]['lr'] *= 0.5",
        "model.calls += 1",
        "state.tell(1)",
    ],
)
def test_what_is_kept_or_made_again(line: str) -> None:
    assert not problem(line)
