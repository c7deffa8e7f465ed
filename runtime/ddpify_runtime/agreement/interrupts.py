"""A Ctrl-C, which stops the ranks at different places: they cannot meet any more (HAZARDS P9).

A rank that waits for another in a collective is not in Python and cannot be stopped. It is when the other one has left.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

_met = False


def watch() -> None:
    """Note the first Ctrl-C, and raise KeyboardInterrupt as Python does; a script's own handler stays."""
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def met() -> bool:
    """Whether this process was interrupted: the others may be anywhere."""
    return _met


def wait(work: Any) -> None:
    """Wait for a collective of torch's.

    Args:
        work: what `dist.all_reduce(..., async_op=True)` gives.

    Raises:
        KeyboardInterrupt: it failed, and this process was interrupted while it waited, as the one that has left.
        RuntimeError: it failed for another reason.
    """
    try:
        work.wait()
    except RuntimeError:
        run_handlers()
        raise


def run_handlers() -> None:
    """Raise the KeyboardInterrupt of a Ctrl-C that came while C++ ran, before an `except` of the script is looked for.

    Python runs the handlers of signals when a function of its own is called, and torch's functions do that after an
    error (`torch.distributed.c10d_logger`); `Work.wait` and a backward pass are in C++.
    """


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _met
    _met = True
    signal.default_int_handler(number, frame)
