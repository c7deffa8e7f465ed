"""Starts a run with the recorder in it, and ends it with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

RECORDER = Path(__file__).with_name("recorder")
TIMED_OUT = 124
GRACE = 5.0  # seconds between asking a run to end and ending it
LAUNCHERS = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_", "DDPIFY_", "TORCHELASTIC_"),
    *("SLURM_", "OMPI_", "PMI_", "HOROVOD_"),
)


def environment(record: Path, python_path: Sequence[str | Path]) -> dict[str, str]:
    """Return the environment of a recorded run: this process's own, but that of no launcher.

    Args:
        record: the folder that the recorder writes to. python_path: what Python looks through after the recorder.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    paths = os.pathsep.join(map(str, [RECORDER, *python_path]))
    return kept | {
        "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
        "DDPIFY_RECORD": str(record),
        "DDPIFY_RANDOM": "original",  # what every rank draws for its own samples only would differ from one process
    }


def torchrun(processes: int) -> list[str]:
    """Return what stands between the interpreter and the script: `processes` of them on this machine."""
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]


def execute(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float) -> tuple[int, str, str]:
    """Run a command to its end.

    Args:
        command: the words. folder: where it runs. environment: all of its variables. limit: seconds until it is ended.
    Returns:
        (exit code, stdout, stderr); the exit code is TIMED_OUT when the limit ended it.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            rc = process.wait(limit)
        except subprocess.TimeoutExpired:
            rc = TIMED_OUT
        finally:
            _end(process)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        return rc, texts[0], texts[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started: torchrun puts its workers into sessions of their own."""
    workers = list(_descendants(process.pid))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE if workers else 1.0)
    for pid in [process.pid, *workers]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    process.wait()


def _descendants(pid: int) -> Iterator[int]:
    """Yield the processes below `pid`, where the system has /proc."""
    for path in Path("/proc").glob(f"{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                yield child
                yield from _descendants(child)
