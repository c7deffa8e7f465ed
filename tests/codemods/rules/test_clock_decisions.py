"""DDP118: what depends on a clock."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.exact.clock_decisions import RULE

from ..checks import assert_refused, assert_silent, rewritten

HEAD = "import time\nfrom datetime import datetime\n"


@pytest.mark.parametrize(
    "source",
    [
        "start = time.time()\nprint(time.time() - start)",
        "while step < 10:\n    start = time.time()",
        "for x in loader:\n    if time.time() - start > 5:\n        print('slow')",
        "for x in loader:\n    if time.time() - last > 5:\n        print(loss)\n        last = time.time()",
        "for x in loader:\n    elapsed = time.time() - start\n    if verbose:\n        save()",
        "if time.time() > 0:\n    save()",
        "for x in loader:\n    if start is None:\n        start = time.time()\n        save()",
        "for x in loader:\n    if torch.distributed.get_rank() == 0:\n        if time.time() > 60:\n            save()",
        "for x in loader:\n    meter = update(time.time() - start)\n    if meter > 3:\n        save()",
        "for x in loader:\n    times = datetime.now().isoformat()\n    if len(times) == 3:\n        save()",
        "class Data:\n    def __getitem__(self, i):\n        while time.time() < self.ready:\n            pass",
    ],
)
def test_clocks_that_decide_nothing(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("while time.time() - start < 60:\n    pass", "time.time() - start < 60"),
        ("while datetime.now() < end:\n    pass", "datetime.now() < end"),
        ("for x in loader:\n    if time.time() - start > 60:\n        break", "time.time() - start > 60"),
        ("for x in loader:\n    if time.perf_counter() - a > 60:\n        save()", "time.perf_counter() - a > 60"),
        ("while True:\n    t = time.time() - start\n    if t > limit:\n        break", "t > limit"),
        ("while True:\n    now = time.time()\n    if now - last > 9:\n        save()", "now - last > 9"),
        ("while True:\n    if time.time() > end:\n        stop = True", "time.time() > end"),
        ("def keep(self):\n    if time.time() - self.last > 9:\n        save()", "time.time() - self.last > 9"),
        ("while step < n and not time.time() > end:\n    pass", "time.time() > end"),
        ("while (datetime.now() - a).total_seconds() < 9:\n    pass", "(datetime.now() - a).total_seconds() < 9"),
    ],
)
def test_clocks_that_decide(source: str, part: str) -> None:
    expected = source.replace(f" {part}:", f" rank_zero_value(lambda: {part})():")
    assert expected != source
    assert rewritten(RULE, HEAD + source).split("\n\n", 1)[-1].endswith(expected)


@pytest.mark.parametrize(
    "source",
    [
        "while time.time() - start < budget():\n    pass",
        "while time.time() - start < loss.item():\n    pass",
        "while (now := time.time()) < end:\n    pass",
    ],
)
def test_conditions_that_rank_0_cannot_decide_alone(source: str) -> None:
    assert_refused(RULE, HEAD + source, line=3)
