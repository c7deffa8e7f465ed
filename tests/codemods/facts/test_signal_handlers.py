"""What is done when a signal comes, and where it is read."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.signal_handlers import at_a_signal, set_at_a_signal, takes_signals

from tests.codemods.checks import script_of, sources_of

TAKES = "import signal\nsignal.signal(signal.SIGTERM, handler)\n"


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("def handler(a, b):\n    global stop\n    stop = True\nwhile not stop:\n    pass", ["stop"]),
        ("def handler(a, b):\n    global stop\n    stop = True\ndef f(stop):\n    return stop", []),
        ("def handler(a, b):\n    global stop\n    stop = True\ndef f():\n    stop = 1\n    return stop", []),
        ("def handler(a, b):\n    stop = True\nwhile not stop:\n    pass", []),
        ("def g():\n    def handler(a, b):\n        nonlocal stop\n        stop = 1\n    return stop", ["stop"]),
        ("def handler(a, b):\n    state['stop'] = True\nif state['stop'] and state:\n    pass", ["state['stop']"]),
        ("def handler(a, b):\n    event.set()\nevent.clear()\nwhile not event.is_set():\n    pass", ["event.is_set()"]),
        ("def handler(a, b):\n    seen.append(a)\nif seen:\n    pass", []),
        ("def handler(a, b):\n    note()\ndef note():\n    global n\n    n = n + 1\nif n > 1:\n    pass", ["n"]),
    ],
)
def test_what_is_set_is_read(source: str, reads: list[str]) -> None:
    assert sources_of(set_at_a_signal(script_of(TAKES + source))) == reads


def test_a_method_sets_an_attribute() -> None:
    source = """
    from signal import SIGTERM, SIGINT, SIG_IGN, signal
    class Stop:
        def __init__(self):
            self.now = False
            signal(SIGTERM, self.handle)
            signal(SIGINT, SIG_IGN)
        def handle(self, number, frame):
            self.now = True
        @property
        def is_due(self):
            return self.now
    stop = Stop()
    while not stop.now:
        stop.now()
    """
    script = script_of(source)
    assert sources_of(handler for _, handler in takes_signals(script)) == ["self.handle"]
    assert sorted(sources_of(set_at_a_signal(script))) == ["self.now", "stop.now"]


def test_a_lambda_may_be_what_is_done() -> None:
    script = script_of("import signal\nsignal.signal(signal.SIGTERM, lambda a, b: save())\ndef save():\n    print(1)")
    assert "print(1)" in sources_of(each for each in at_a_signal(script) if isinstance(each, ast.Call))
