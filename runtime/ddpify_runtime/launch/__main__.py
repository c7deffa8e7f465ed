"""`python -m ddpify_runtime.launch torchrun … -- train.py`: a launcher, the script's status, and who failed first.

Any command line that starts processes: torchrun, mpirun, srun. torchrun itself ends with status 1 whatever its script
said, and with sixty lines; this one runs in here, as torch's own functions.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from . import failures


def main(command: Sequence[str]) -> int:
    """Run a launcher until it has ended; then say on stderr which rank failed first, and why.

    Args: the launcher's command line.
    Returns the status of the process that failed first, 128 + the number of the signal that ended it or this process,
    0, or 2 for no command.
    """
    if not command:
        print("ddpify: use: python -m ddpify_runtime.launch COMMAND, such as torchrun -- SCRIPT", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ddpify-") as folder:
        os.environ[failures.FOLDER] = folder
        status = _torchrun(command[1:]) if command[0] == "torchrun" else _command(command)
        failure = failures.first(Path(folder)) if status else None
    if failure is not None:
        print(failure, file=sys.stderr)
    return status


def _torchrun(words: Sequence[str]) -> int:
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    arguments = parse_args(list(words))
    try:
        run(arguments)
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        return failures.record_exits(codes, arguments.max_restarts)
    except SignalException as ended:
        return 128 + ended.sigval
    return 0


def _command(command: Sequence[str]) -> int:
    """In a session of its own: a Ctrl-C would reach it twice, and the second means `at once` to mpirun and srun."""
    process = subprocess.Popen(command, start_new_session=True)

    def forward(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
