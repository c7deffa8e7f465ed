"""Runs a script on XLA devices through the fork server."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ddpify.verify.processes import TIMED_OUT
from tests.xla.runs import XLA_PYTHON, free_port

SERVER = Path(__file__).with_name("fork_server.py")

_server: subprocess.Popen[str] | None = None


def start(
    words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    """Run a command line in one process for each device; (exit code, stdout, stderr). See `harness.Start`."""
    server = _started(environment)
    assert server.stdin is not None and server.stdout is not None
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        job = {"words": list(words), "processes": max(1, world_size), "folder": str(folder), "port": free_port()}
        job |= {"environment": dict(environment), "out": out.name, "err": err.name}
        print(json.dumps(job), file=server.stdin, flush=True)
        ready, _, _ = select.select([server.stdout], [], [], limit)
        answer = server.stdout.readline() if ready else ""
        if not answer:
            _end()
        texts = [stream.read().decode("utf-8", "replace") for stream in (out, err)]
    return int(answer) if answer else TIMED_OUT, texts[0], texts[1]


def _started(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """The server; the first job's environment is what torch_xla meets at its import."""
    global _server
    if _server is None:
        _server = subprocess.Popen(
            [XLA_PYTHON, str(SERVER)], env=dict(environment) | {"PYTHONPATH": ""}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(_end)
    return _server


def _end() -> None:
    """End the server and all that it started."""
    global _server
    if _server is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(_server.pid, signal.SIGKILL)
        _server.wait()
    _server = None
