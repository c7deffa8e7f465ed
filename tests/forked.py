"""Runs a script in processes that a server forks, which has imported what takes long already."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ddpify.verify.processes import TIMED_OUT

SERVER = Path(__file__).with_name("fork_server.py")

# Per interpreter and what it has imported.
_servers: dict[tuple[str, ...], subprocess.Popen[str]] = {}


def start(
    words: Sequence[str],
    world_size: int,
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
    interpreter: tuple[str, ...],
    kept: Path | None = None,
) -> tuple[int, str, str]:
    """As `run`; what was written, as text. See `harness.Start`."""
    code, out, err = run(words, world_size, folder, environment, limit, interpreter, kept)
    return code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def run(
    words: Sequence[str],
    world_size: int,
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
    interpreter: tuple[str, ...],
    kept: Path | None = None,
    stdin: bytes = b"",
    path: str = "",
) -> tuple[int, bytes, bytes]:
    """Run a command line in some processes; (exit code, stdout, stderr).

    Args:
        interpreter: a Python, then the modules that the processes have imported before their script's first line.
        kept: where each rank's output goes, instead of being returned: `<rank>/stdout.log` and `<rank>/stderr.log`.
        stdin: what the processes read. path: the PYTHONPATH by which these modules are found.
    """
    server = _started(interpreter, {**environment, "PYTHONPATH": path})
    assert server.stdin is not None and server.stdout is not None
    made = tempfile.NamedTemporaryFile
    with made() as given, made() as out, made() as err:
        given.write(stdin)
        given.flush()
        job = {"words": list(words), "processes": max(1, world_size), "folder": str(folder), "port": free_port()}
        job |= {"environment": dict(environment), "in": given.name, "out": out.name, "err": err.name}
        if kept:
            job |= {"out": f"{kept}/<rank>/stdout.log", "err": f"{kept}/<rank>/stderr.log"}
            for rank in range(world_size):
                (kept / str(rank)).mkdir(parents=True)
        print(json.dumps(job), file=server.stdin, flush=True)
        ready, _, _ = select.select([server.stdout], [], [], limit)
        answer = server.stdout.readline() if ready else ""
        if not answer:
            _end(interpreter)
        return int(answer) if answer else TIMED_OUT, out.read(), err.read()


def free_port() -> str:
    """A port that no process listens on, below those that connections are given meanwhile (ip_local_port_range)."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("localhost", port))
            return str(port)


def _started(interpreter: tuple[str, ...], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """The server; the first job's environment is what the modules meet at their import."""
    if interpreter not in _servers:
        python, *modules = interpreter
        _servers[interpreter] = subprocess.Popen(
            [python, str(SERVER), *modules], env=dict(environment), text=True,
            start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(_end, interpreter)
    return _servers[interpreter]


def _end(interpreter: tuple[str, ...]) -> None:
    """End a server and all that it started."""
    server = _servers.pop(interpreter, None)
    if server is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
