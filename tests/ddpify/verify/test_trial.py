"""A run in a folder of its own: what is told of one that failed."""

from __future__ import annotations

import pytest

from ddpify.verify.runs import Run
from ddpify.verify.trial import failure, other_threads


def test_the_last_lines_of_a_run_that_failed() -> None:
    run = Run(1, "", "first\n\n" + "".join(f"line {number}\n" for number in range(20)) + "\nValueError: no\n", {}, {})
    said = failure(run, lines=3)
    assert list(said) == ["    line 18", "    line 19", "    ValueError: no"]


@pytest.mark.parametrize(
    ("cores", "given", "count", "others"),
    [
        (2, "", 2, [2, 2, 2]),
        (2, "", 1, [1, 1, 1]),
        (4, "", 2, [1, 3, 4]),
        (1, "", 2, [2, 2, 2]),
        (4, "4", 2, [1, 2, 3]),
        (2, "4,2", 2, [2, 2, 2]),
    ],
)
def test_control_runs_add_up_with_another_number_of_threads(
    cores: int, given: str, count: int, others: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert [other_threads(count, number) for number in range(3)] == others
