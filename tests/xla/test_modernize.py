"""Old XLA code, rewritten, runs on the current torch_xla without a deprecated call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.xla import runs


def test_modernized_code_trains(tmp_path: Path) -> None:
    modern = runs.convert(runs.SCRIPTS / "older.py", tmp_path, "--modernize")
    [line] = [line for line in runs.xla(modern, 2).splitlines() if line.startswith("weight")]
    _, weight, local_ordinal, device = line.split()
    assert (local_ordinal, device) == ("0", "CPU")
    assert float(weight) == pytest.approx(_weight(), rel=1e-5)


def _weight() -> float:
    """The sum of the weights after the same steps in plain Python."""
    rows = [[(4 * number + column) / 64 for column in range(4)] for number in range(16)]
    weights, bias, rate = [0.5] * 4, 0.5, 0.1 / 2
    for _ in range(2):
        for step in range(4):
            # The sampler deals the rows out in turn; xm.optimizer_step takes the mean over the devices.
            batch = [rows[4 * step + place] for place in range(4)]
            errors = [sum(w * x for w, x in zip(weights, row, strict=True)) + bias for row in batch]
            slopes = [2 * error / len(batch) for error in errors]
            weights = [
                w - rate * sum(slope * row[column] for slope, row in zip(slopes, batch, strict=True))
                for column, w in enumerate(weights)
            ]
            bias -= rate * sum(slopes)
    return sum(weights)
