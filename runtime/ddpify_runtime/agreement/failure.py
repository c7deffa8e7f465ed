"""What one rank meets and the others may not: they cannot know of it, and would wait for ever (HAZARDS L20, P7, P8)."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist

from ..launch import failures
from ..torch_internals import default_store
from . import standard_streams

# How long a rank waits for the others in the middle of a step: they compute the same, so they are not far.
LIMIT = timedelta(seconds=30)
# At its end the others may still evaluate on slower machines: ending them would lose what they have.
END_LIMIT = timedelta(minutes=5)

_met = 0


def everyone_is_here(limit: timedelta) -> bool:
    """Whether all ranks call this within the limit. It goes through the store: the others may be in a collective.

    (A monitored barrier would do on rank 0 only: on the others it waits as long as the process group's own timeout.)
    """
    global _met
    _met += 1
    store, key = default_store(), f"ddpify/{_met}"
    if store.add(key, 1) == dist.get_world_size():
        store.set(f"{key}/all", "")
    try:
        store.wait([f"{key}/all"], limit)
    except RuntimeError:
        return False
    return True


def require_everywhere(error: Exception, where: str, remedy: str) -> None:
    """Return when every rank has an exception here, so that the script may handle it on all of them.

    Otherwise the script could not: the other ranks wait for this one. This process ends, with the reason on stderr, and
    its launcher ends the others.

    Args:
        error: what was raised here. where, remedy: for the message.
    """
    if everyone_is_here(LIMIT):
        return
    if standard_streams.STDERR is not None:
        traceback.print_exception(error, file=standard_streams.STDERR)
    leave(
        f"{type(error).__name__} in {where} on rank {dist.get_rank()} alone: {error}. The other processes wait for "
        f"this one, so the run ends here. {remedy}"
    )


def wait_for_threads_only_briefly() -> None:
    """End this process within END_LIMIT after its main thread, which ends with an error: others wait for it to go.

    Python waits for the threads of the script, and one that puts batches into a queue that nobody reads any more waits
    for ever.
    """
    with suppress(RuntimeError):  # where no thread can be started, that may be the error
        threading.Thread(target=_outlast_main_thread, daemon=True).start()


def _outlast_main_thread() -> None:
    threading.main_thread().join()
    time.sleep(END_LIMIT.total_seconds())
    leave(f"threads of the script have not come to an end within {END_LIMIT.seconds} s of the error in its main thread")


def leave(reason: str) -> None:
    """End this process with an error, past every `except` of the script; its launcher ends the others."""
    failures.record(dist.get_rank(), reason)
    with suppress(Exception):  # it may be closed, or the script's own
        sys.stdout.flush()
    if standard_streams.STDERR is not None:
        print(f"ddpify: {reason}", file=standard_streams.STDERR, flush=True)
    os._exit(1)
