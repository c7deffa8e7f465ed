"""What a Ctrl-C does to one process; how ranks end after it is in test_failure.py."""

from __future__ import annotations

import signal
from typing import Any

from ddpify_runtime.agreement import interrupts

from tests.runtime import processes


class _Failed:
    """A collective during which a signal came, and which then fails."""

    def wait(self) -> None:
        signal.raise_signal(signal.SIGINT)
        raise RuntimeError("Connection closed by peer")


def _interrupted() -> tuple[str, bool, bool]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.watch()
    before = interrupts.met()
    try:
        interrupts.wait(_Failed())
    except (KeyboardInterrupt, RuntimeError) as error:
        return type(error).__name__, before, interrupts.met()
    return "", before, interrupts.met()


def test_a_collective_that_fails_after_a_ctrl_c_is_interrupted() -> None:
    assert processes.run(1, _interrupted) == [("KeyboardInterrupt", False, True)]


def _own_handler() -> bool:
    def own(*_: Any) -> None:
        """What a script does on Ctrl-C."""

    signal.signal(signal.SIGINT, own)
    interrupts.watch()
    return signal.getsignal(signal.SIGINT) is own


def test_the_handler_of_a_script_stays() -> None:
    assert processes.run(1, _own_handler) == [True]
