from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed

TRAIN = "def train(optimizer, scaler):\n    optimizer.zero_grad()\n"


def test_other_targets_step_as_they_do() -> None:
    check_noop(TRAIN + "    optimizer.step()", "cpu")
    check_noop(TRAIN + "    optimizer.step()", "cuda")


@pytest.mark.parametrize(
    "lines",
    [
        "def advance(scheduler):\n    scheduler.step()",
        TRAIN + "    result = optimizer.step()",
        'x = torch.load("a.pt", map_location="cpu")',
    ],
)
def test_xla_keeps_the_rest(lines: str) -> None:
    check_noop(lines, "xla")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TRAIN + "    optimizer.step()", TRAIN + "    optimizer.step()\n    torch_xla.sync()"),
        (TRAIN + "    scaler.step(optimizer)", TRAIN + "    scaler.step(optimizer)\n    torch_xla.sync()"),
        ("def train(opt):\n    opt.zero_grad()\n    opt.step()",
         "def train(opt):\n    opt.zero_grad()\n    opt.step()\n    torch_xla.sync()"),
        ('device = 1\nx = torch.load("a.pt", map_location=device)',
         'device = 1\nx = torch.load("a.pt", map_location="cpu")'),
    ],
)  # fmt: skip
def test_xla_runs_each_step(before: str, after: str) -> None:
    check_transformed(before, after, "xla")
