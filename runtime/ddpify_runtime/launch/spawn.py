"""`python -m ddpify_runtime.launch.spawn N SCRIPT ARGS`: N processes of torch.multiprocessing.spawn on this machine.

Without torchrun's agent: less to start, and nothing that restarts. Every process runs the script from its first line,
so nothing of it has to be importable or picklable (HAZARDS P1, P2).
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from . import failures
from .meeting import LOOPBACK, free_port

_OURS = (__file__, "<frozen runpy>", runpy.__file__)  # above the script in every traceback


def main(arguments: Sequence[str]) -> int:
    """Run a script in several processes until all have ended, or one has failed.

    Args: the number of processes, and a command line as Python takes it: `4 train.py --epochs 2` or `4 -m a.train`.
    Returns the status of the process that failed first, 128 + the number of the signal that ended it or this
    process, 0, or 2 for a command line that names no script.
    """
    processes, *words = arguments or ("",)
    if not processes.isdigit() or not int(processes) or not words or words == ["-m"]:
        print("ddpify: use: python -m ddpify_runtime.launch.spawn N [-m] SCRIPT ARGS", file=sys.stderr)
        return 2
    from torch.multiprocessing.spawn import ProcessExitedException, spawn

    os.environ |= {"WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
    os.environ |= {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(free_port())}
    context = spawn(_work, (words,), int(processes), join=False)

    forwarded: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        forwarded.append(number)
        for pid in context.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    try:
        while not context.join():
            pass
    except ProcessExitedException as error:
        if forwarded:  # a rank that was still in a collective raises, or torch aborts it, when another is gone
            return 128 + forwarded[0]
        ended = {rank: process.exitcode for rank, process in enumerate(context.processes)}
        return failures.record_exits({error.error_index: error.exit_code, **ended})
    return 0


def _work(rank: int, words: Sequence[str]) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    module = words[0] == "-m"
    sys.argv = list(words[1:] if module else words)
    try:
        if module:
            sys.path[0] = os.getcwd()
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
            runpy.run_path(sys.argv[0], run_name="__main__")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)  # spawn would take it for a good end
    except Exception as error:  # noqa: BLE001  spawn would print a traceback of ours around it
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
            trace = trace.tb_next
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
