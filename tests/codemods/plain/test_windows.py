"""Windows over the last numbers: what falls out of them cannot be told after a loop, so each number is that of all."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals, training

WINDOW = "from collections import deque\nlast = deque({given})\nfor epoch"
STEP = "optimizer.step()\n        last.append(loss.item())"


@pytest.mark.parametrize("given", ["maxlen=3", "[], 3"])
def test_what_is_put_into_a_window_is_that_of_all_ranks(given: str) -> None:
    source = training(step=STEP, after="print(sum(last) / len(last))\n")
    result = plain(source.replace("for epoch", WINDOW.format(given=given), 1))
    assert not refusals(result)
    assert "last.append(mean_over_ranks(loss.item()))" in result.code
    assert "last = mean_over_ranks" not in result.code


def test_a_queue_that_keeps_everything_is_brought_together_once() -> None:
    source = training(step=STEP, after="print(sum(last) / len(last))\n")
    code = plain(source.replace("for epoch", WINDOW.format(given=""), 1)).code
    assert "last = mean_over_ranks(last)" in code
