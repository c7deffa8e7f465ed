"""DDP308: what depends on a clock."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.clock_decisions import RULE

from ..checks import assert_refused, assert_silent

HEAD = "import time\nfrom datetime import datetime\n"


@pytest.mark.parametrize(
    "source",
    [
        "start = time.time()\nprint(time.time() - start)",
        "while step < 10:\n    start = time.time()",
        "for x in loader:\n    if time.time() - start > 5:\n        print('slow')",
        "for x in loader:\n    elapsed = time.time() - start\n    if verbose:\n        save()",
        "if time.time() > 0:\n    save()",
    ],
)
def test_clocks_that_decide_nothing(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("while time.time() - start < 60:\n    pass", 3),
        ("while datetime.now() < end:\n    pass", 3),
        ("for x in loader:\n    if time.time() - start > 60:\n        break", 4),
        ("for x in loader:\n    if time.perf_counter() - last > 60:\n        save()", 4),
        ("while True:\n    elapsed = time.time() - start\n    if elapsed > limit:\n        break", 5),
    ],
)
def test_clocks_that_decide(source: str, line: int) -> None:
    assert_refused(RULE, HEAD + source, line)
