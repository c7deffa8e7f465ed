"""Exceptions around a training: a rank that goes on and trains again leaves the others waiting."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.handlers import GOES_ON

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
model = torch.nn.Linear(4, 3)


def train(model, size):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(train_set, batch_size=size, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""
AGAIN = "try:\n    train(model, 12)\nexcept {}:\n    {}\n"


def is_refused(lines: str) -> bool:
    return any(GOES_ON in each for each in refusals(plain(SCRIPT + lines)))


@pytest.mark.parametrize("error", ["torch.cuda.OutOfMemoryError", "Exception as error", "(ValueError, RuntimeError)"])
def test_training_again_after_an_exception(error: str) -> None:
    assert is_refused(AGAIN.format(error, "train(model, 6)"))


@pytest.mark.parametrize("handled", ["continue", "if 'memory' in str(error):\n            continue\n        raise"])
def test_a_loop_that_tries_one_after_another(handled: str) -> None:
    tries = "for size in (12, 6):\n    try:\n        train(model, size)\n    except Exception as error:\n        "
    assert is_refused(f"{tries}{handled}\n")


@pytest.mark.parametrize(
    "lines",
    [
        "for size in (12, 6):\n    try:\n        train(model, size)\n    except EOFError:\n        break\n",
        AGAIN.format("ValueError", "sys.exit(1)"),
        AGAIN.format("ValueError", "print('no')\n    raise"),
        AGAIN.format("Exception as error", "print(error)"),  # the end of the run
        AGAIN.format("KeyboardInterrupt", "train(model, 6)"),
        "try:\n    n = int('3')\nexcept ValueError:\n    n = 4\ntrain(model, n)\n",
        "for size in (12, 6):\n    try:\n        train(model, size)\n    except ValueError:\n        sys.exit(1)\n",
    ],
)
def test_what_ends_the_run_stays(lines: str) -> None:
    assert not is_refused(lines)
    assert not refusals(plain(SCRIPT + lines))
