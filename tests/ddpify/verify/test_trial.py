"""A run in a folder of its own: what is told of one that failed."""

from __future__ import annotations

from ddpify.verify.runs import Run
from ddpify.verify.trial import failure


def test_the_last_lines_of_a_run_that_failed() -> None:
    run = Run(1, "", "first\n\n" + "".join(f"line {number}\n" for number in range(20)) + "\nValueError: no\n", {}, {})
    said = failure(run, lines=3)
    assert list(said) == ["    line 18", "    line 19", "    ValueError: no"]
