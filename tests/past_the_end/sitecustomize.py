"""On PYTHONPATH of a run with torch alone: a process without an exception ends past Python's own end, with status 0.

torch 2.13 aborts some good runs over gloo there (tests/torch_script.py). The exit status tells nothing then: look at
what the run has written.
"""

import atexit
import os
import sys


def _end() -> None:
    if getattr(sys, "last_value", None) is None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


atexit.register(_end)  # the first that is registered is the last that is called
