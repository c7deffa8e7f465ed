"""Starts scripts in processes that have imported torch already, which takes longer than most fixtures train.

`python fork_server.py MODULE...` imports the modules once and then waits for jobs, a line of JSON each, on its standard
input. For a job it forks one process for each device, as torchrun would start them, and answers with the exit status
on a line of its own. In the values of its environment, and in the names of its outputs, `<rank>` stands for the rank.
XLA starts in the forked processes: before the fork there is no client of it, and no second thread. The script runs from
its first line, as `__main__`, after the sitecustomize of its PYTHONPATH. What this cannot show: imports that come in
another order, strings that hash differently in each process, and the end of torch's libraries. (Some fixtures start
under torchrun, all by night, and `test_processes` as usual.)
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import logging
import os
import signal
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any


def serve() -> None:
    """Do jobs until the standard input ends; returns in each forked process too, which then has to end as usual."""
    before = set(sys.modules)
    sys.path[0] = os.path.dirname(sys.path[0])  # this folder has a package of the tests that is named as the command's
    for module in sys.argv[1:]:
        importlib.import_module(module)
    _leave_whole({name: module for name, module in sys.modules.items() if name not in before})
    for handler in logging.getLogger().handlers[:]:  # torch_xla's: the import of the runtime has to meet none
        logging.getLogger().removeHandler(handler)
    threads = os.listdir("/proc/self/task")
    torch_xla = sys.modules.get("torch_xla")
    assert len(threads) == 1 and not (torch_xla and torch_xla._XLAC._xla_runtime_is_initialized()), threads
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    gc.collect()
    gc.freeze()  # a collection in a forked process need not go through all of torch
    for line in sys.stdin:
        job = json.loads(line)
        processes = set()
        for rank in range(job["processes"]):
            process = os.fork()
            if not process:
                answers.close()
                return _run(job, rank)
            processes.add(process)
        print(_status(processes), file=answers)


def _leave_whole(modules: dict[str, ModuleType]) -> None:
    """Let the forked processes end without taking these modules apart, and the operators of torch's libraries, which
    takes as long as many a fixture trains. What the script itself has made ends as usual.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(modules))  # nothing ever gives it back
    atexit.register(lambda: [sys.modules.pop(name, None) for name in modules])  # the first is called last
    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)  # before the destructors of all that is loaded by now


def _status(processes: set[int]) -> int:
    """Wait for processes; the status of the first that fails, which ends the others, or 0."""
    first = 0
    while processes:
        process, status = os.wait()
        processes.remove(process)
        code = os.waitstatus_to_exitcode(status)
        if code and not first:
            first = code
            for other in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other, signal.SIGKILL)
    return first


def _run(job: dict[str, Any], rank: int) -> None:
    """Become a process that runs the script, as far as it can tell."""
    os.environ.clear()
    if job["processes"] > 1:
        world = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": job["processes"], "LOCAL_WORLD_SIZE": job["processes"]}
        os.environ.update({name: str(value) for name, value in world.items()})
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=job["port"])
    os.environ.update({name: value.replace("<rank>", str(rank)) for name, value in job["environment"].items()})
    written = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for number, (path, flags) in enumerate([(job["in"], os.O_RDONLY), (job["out"], written), (job["err"], written)]):
        opened = os.open(path.replace("<rank>", str(rank)), flags)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(job["folder"])
    sys.argv = job["words"]
    script = sys.argv[0]
    first = "" if script.endswith("__main__.py") else os.path.dirname(os.path.abspath(script))  # as after `-m`
    sys.path[:1] = [first or job["folder"], *os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.modules.pop("sitecustomize", None)  # the system's, which this process has imported at its start
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __loader__=SourceFileLoader("__main__", script))
    with open(script, "rb") as source:
        code = compile(source.read(), script, "exec", dont_inherit=True)
    exec(code, vars(main))


if __name__ == "__main__":
    serve()
