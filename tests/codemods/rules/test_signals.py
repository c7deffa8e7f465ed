"""DDP132: what is done when a signal comes."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.exact.signals import RULE

from ..checks import assert_refused, assert_silent, findings_of, rewritten

HEAD = "import signal, sys, torch\nsignal.signal(signal.SIGTERM, handler)\n"


@pytest.mark.parametrize(
    "source",
    [
        "def handler(a, b):\n    sys.exit(1)",
        "def handler(a, b):\n    print('stopped')",
        "def handler(a, b):\n    global stop\n    stop = 1\nclass A:\n  def __getitem__(self, i):\n    return stop",
    ],
)
def test_nothing_to_agree_on(source: str) -> None:
    assert_silent(RULE, HEAD + source)


def test_what_is_read_is_rank_zeros() -> None:
    event = "def handler(a, b):\n    event.set()\nwhile {}():\n    torch.save(1, 'a')"
    assert event.format("rank_zero_value(event.is_set)") in rewritten(RULE, HEAD + event.format("event.is_set"))


def test_what_is_saved_at_once_is_refused() -> None:
    assert_refused(RULE, f"{HEAD}def save():\n    torch.save(1, 'a')\ndef handler(a, b):\n    save()", 4)


def test_what_is_not_seen_is_said() -> None:
    [finding] = findings_of(RULE, HEAD)
    assert (finding.severity, finding.line) == ("warning", 2)
