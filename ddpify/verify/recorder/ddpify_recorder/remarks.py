"""Records what ddpify_runtime warns of, also where the script shows no warnings."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ddpify_recorder.recorder import Recorder

PREFIX = "ddpify: "


def watch(recorder: Recorder) -> None:
    """Write down each warning of the runtime from now on."""
    warn = warnings.warn

    @functools.wraps(warn)
    def warned(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
        if str(message).startswith(PREFIX):
            recorder.write("remark", str(message).removeprefix(PREFIX))
        warn(message, category, stacklevel + 1, *args, **kwargs)

    warnings.warn = warned
