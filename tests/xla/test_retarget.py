"""Eager DDP on two gloo processes against its conversion on two XLA devices: the same parameters after every step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.xla import runs

RELATIVE = 1e-5  # XLA fuses operations, and so rounds in other places


def _history(folder: Path, rank: int) -> list[torch.Tensor]:
    """All parameters after each step, as one tensor a step."""
    steps = torch.load(folder / f"rank{rank}.pt", weights_only=True)
    assert all(tensor.device.type == "cpu" for step in steps for tensor in step)
    return [torch.cat([parameter.reshape(-1) for parameter in step]) for step in steps]


def _assert_same_training(eager: Path, xla: Path, steps: int) -> None:
    expected, found = _history(eager, 0), [_history(xla, rank) for rank in range(2)]
    assert [len(history) for history in (expected, *found)] == [steps] * 3
    for step, one, first, second in zip(range(steps), expected, *found, strict=True):
        assert torch.equal(first, second), f"step {step}: the ranks differ"
        assert (first - one).norm() <= RELATIVE * one.norm(), f"step {step}"
    assert (expected[0] - expected[-1]).norm() > 0.01 * expected[0].norm(), "nothing was trained"


def _epochs(printed: str) -> list[list[float]]:
    """The numbers of the lines that name an epoch."""
    lines = [line.partition("epoch ")[2] for line in printed.splitlines() if "epoch " in line]
    return [[float(word) for word in line.split(": ")] for line in lines]


def _assert_same_lines(expected: list[list[float]], found: list[list[float]]) -> None:
    assert len(found) == len(expected) == 3
    for one, other in zip(expected, found, strict=True):
        assert other == pytest.approx(one, rel=RELATIVE, abs=1e-6)  # as many digits are printed


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@pytest.mark.nightly
def test_spawned(tmp_path: Path) -> None:
    converted = runs.convert(runs.SCRIPTS / "spawned.py", tmp_path)
    eager = _folder(tmp_path, "eager")
    expected = _epochs(runs.spawned(runs.SCRIPTS / "spawned.py", eager))
    for repeat in range(3):  # what threads get wrong, they get wrong now and then
        xla = _folder(tmp_path, f"xla{repeat}")
        _assert_same_lines(expected, _epochs(runs.xla(converted, 2, xla)))
        _assert_same_training(eager, xla, steps=12)
        torch.load(xla / "start.pt", weights_only=True)


def test_torchrun(tmp_path: Path) -> None:
    converted = runs.convert(runs.SCRIPTS / "torchrun.py", tmp_path)
    eager, xla = _folder(tmp_path, "eager"), _folder(tmp_path, "xla")
    expected = _epochs(runs.torchrun(runs.SCRIPTS / "torchrun.py", 2, eager))
    _assert_same_lines(expected, _epochs(runs.xla(converted, 2, xla)))
    _assert_same_training(eager, xla, steps=9)
