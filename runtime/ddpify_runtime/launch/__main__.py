"""`python -m ddpify_runtime.launch N SCRIPT ARGS`: torchrun on this machine, with the status of the script."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run a script in several processes until all have ended, or one has failed.

    Args: the number of processes, and a command line as Python takes it: `4 train.py --epochs 2` or `4 -m a.train`.
    Returns the status of the process that failed first, 128 + the number of the signal that ended it, 0, or 2 for a
    command line that names no script.
    """
    processes, *command = arguments or ("",)
    words = command[1:] if command[:1] == ["-m"] else command
    if not processes.isdigit() or not int(processes) or not words:
        print("ddpify: use: python -m ddpify_runtime.launch N [-m] SCRIPT ARGS", file=sys.stderr)
        return 2
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    options = ["--standalone", "--nproc-per-node", processes, *command[: len(command) - len(words)]]
    try:
        run(parse_args([*options, "--", *words]))  # without it, `--s` of the script is an ambiguous `--standalone`
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    except SignalException as ended:
        return 128 + ended.sigval
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
