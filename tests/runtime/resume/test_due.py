"""When a checkpoint is due."""

from __future__ import annotations

import time

import pytest
from ddpify_runtime.resume import due


def test_every_so_many_steps() -> None:
    counter, at = due.Due(600, 3), []
    for step in range(1, 10):
        if counter.step():
            at.append(step)
            counter.saved()
    assert at == [3, 6, 9]


def test_the_clock_is_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looked, at = 0.0, 0, []

    def clock() -> float:
        nonlocal looked
        looked += 1
        return now

    monkeypatch.setattr(time, "monotonic", clock)
    counter = due.Due(100, None)
    for step in range(1, 1001):
        now += 1
        if counter.step():
            at.append(step)
            counter.saved()
    assert at[0] in (100, 101) and len(at) in (9, 10)
    assert looked < 150
