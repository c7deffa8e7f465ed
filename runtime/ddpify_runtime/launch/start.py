"""How a script that was started as one process becomes several: `DDPIFY_NPROC=4 python train.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from . import environment

_FOLDER = os.getcwd()


def start_processes(nprocs: int = 1, environ: Mapping[str, str] = os.environ) -> None:
    """Become torchrun for this same command line when DDPIFY_NPROC, or else the script, asks for processes and no
    launcher made any.

    `DDPIFY_NPROC=4 python train.py` is `torchrun --standalone --nproc-per-node 4 -- train.py`. Does not return then.
    The script runs from its first line in each process, so nothing has to be importable or picklable (HAZARDS P1, P2).
    """
    processes = environ.get("DDPIFY_NPROC", "") or str(nprocs)
    if not processes or "RANK" in environ or environment.read(environ).world_size > 1:
        return
    if not processes.isdigit() or not int(processes):
        raise RuntimeError(f"DDPIFY_NPROC={processes!r} is not a number of processes")
    if int(processes) == 1:
        return
    os.chdir(_FOLDER)  # where a script that has gone elsewhere since is found, and goes elsewhere again
    sys.stdout.flush()
    sys.stderr.flush()
    torchrun = ["-m", "ddpify_runtime.launch", "torchrun", "--standalone", "--nproc-per-node", processes]
    os.execv(sys.executable, [sys.executable, *torchrun, *_command_line()])


def _command_line() -> list[str]:
    """How this script was started, as torchrun takes it: after `--`, or it takes the script's `--s` for its own."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None:  # started as `python -m package.train`
        return ["-m", "--", spec.name.removesuffix(".__main__"), *sys.argv[1:]]
    script, *arguments = sys.argv
    if not os.path.exists(script):  # it went elsewhere before it imported this package
        script = getattr(sys.modules["__main__"], "__file__", script)
    return ["--", script, *arguments]
