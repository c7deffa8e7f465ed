"""Which rank of a run failed first, and why: each writes its last words into a folder that the starter looks at."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

FOLDER = "DDPIFY_FAILURES"  # the variable that names it
LINES = 6  # of a traceback: the last call, its source, and the error
_LOST = re.compile("Connection (closed|reset) by peer|Broken pipe")  # gloo, when another rank is gone


@dataclass(frozen=True)
class Failure:
    """The end of one rank: when (seconds since 1970), on which host, and what it said."""

    rank: int
    host: str
    time: float
    words: str

    def __str__(self) -> str:
        """For people: one line, and the words below it."""
        said = "lost a rank that ended without a word" if _LOST.search(self.words) else "failed first"
        return "\n".join(
            [f"ddpify: rank {self.rank} on {self.host} {said}:", *map("  {}".format, self.words.splitlines())]
        )


def record(rank: int, words: str, when: float | None = None, attempt: int | None = None) -> None:
    """Write down why a rank ended, if somebody wants to know; what the rank itself has written stays.

    Args:
        rank: which. words: the reason. when: seconds since 1970; now by default. attempt: how often torchrun has
            started the ranks again; by default what it says to this process.
    """
    folder = os.environ.get(FOLDER)
    if folder and Path(folder).is_dir():  # not there on another machine
        number = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if attempt is None else attempt
        failure = {"rank": rank, "host": socket.gethostname(), "time": time.time() if when is None else when}
        with suppress(OSError), open(f"{folder}/{number}-{rank}", "x", encoding="utf-8") as file:
            json.dump({**failure, "words": words}, file)


def record_exception(rank: int, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """As `record`, with the last lines of a traceback; not of a Ctrl-C, which meets every rank."""
    if not issubclass(kind, KeyboardInterrupt):
        lines = "".join(traceback.format_exception(kind, error, trace)).rstrip().splitlines()
        record(rank, "\n".join(lines[-LINES:]))


def record_exits(codes: Mapping[int, int], attempt: int = 0) -> int:
    """As `record`, for ranks that ended without a word: before anything that the others had to say of it.

    Args:
        codes: the exit code of each rank's process (-9: signal 9), in the order in which they were seen to end.
        attempt: as for `record`.
    Returns the status of what failed first: of one that was killed, since the others raise when they lose it; 128 + the
    number of a signal; 0 if nothing failed.
    """
    failed = {
        rank: code for rank, code in codes.items() if code and code != -signal.SIGTERM
    }  # that is how they are ended
    # torch's own threads abort a process that ends with an exception.
    killed = {rank: code for rank, code in failed.items() if code < 0 and code != -signal.SIGABRT}
    failed = killed | failed
    for order, (rank, code) in enumerate(failed.items()):
        ended = f"exit code {code}" if code > 0 else f"ended by signal {-code} ({signal.Signals(-code).name})"
        record(rank, ended, when=float(order), attempt=attempt)
    code = next(iter(failed.values()), 0) or next((code for code in codes.values() if code), 0)
    return code if code >= 0 else 128 - code


def first(folder: Path) -> Failure | None:
    """The first failure of the last attempt; None if no rank has written."""
    found: dict[int, list[Failure]] = {}
    for path in folder.iterdir():
        with suppress(ValueError, TypeError):  # half written by a process that was killed
            found.setdefault(int(path.name.split("-")[0]), []).append(Failure(**json.loads(path.read_text("utf-8"))))
    return min(found[max(found)], key=lambda failure: failure.time) if found else None
