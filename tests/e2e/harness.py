"""Runs a fixture's original and its conversions in real processes, and collects all that they leave behind."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e import contents, fixtures
from tests.e2e.fixtures import Fixture

LIMIT = 120.0  # seconds that one run may take
GRACE = 5.0  # seconds between asking a run to end and ending it
LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_", "DDPIFY_", "SLURM_", "OMPI_", "PMI_")
RECORDER = Path(__file__).with_name("recorder")
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Step:
    """One optimizer step: traces of the parameters after it and of the gradients it used (see the recorder)."""

    optimizer: int
    params: list[Any]
    grads: list[Any]
    forwards: int = 0  # of DistributedDataParallel, up to this step


@dataclass(frozen=True)
class Run:
    """What a run left behind."""

    rc: int
    stdout: str
    stderr: str
    records: Mapping[int, list[Step]]  # by rank
    files: Mapping[str, Any] = field(repr=False)  # relative path -> see contents.read; directories end in "/"


@functools.cache
def run_original(fixture: Fixture) -> Run:
    """Run the script as its author wrote it; once in a session."""
    sources = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    return run_sources(fixture, sources, cuda_shim=fixture.cuda_shim)


def run_converted_alone(fixture: Fixture) -> Run:
    """Run the script converted for cpu in one process, without a launcher."""
    return run_sources(fixture, converted_sources(fixture))


def run_converted(fixture: Fixture, world_size: int) -> Run:
    """Run the script converted for cpu under torchrun."""
    return run_sources(fixture, converted_sources(fixture), world_size)


@functools.cache
def converted_sources(fixture: Fixture) -> dict[str, bytes]:
    """Return the files of the converted script, the unchanged ones too: relative path -> content."""
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    return original | fixtures.converted(fixture, "cpu")


def run_sources(
    fixture: Fixture, sources: Mapping[str, bytes], world_size: int = 0, cuda_shim: bool = False, limit: float = LIMIT
) -> Run:
    """Run files in a new folder, and read what they leave there.

    Args:
        fixture: how to start them.
        sources: relative path -> content.
        world_size: number of processes under torchrun; 0 for plain python.
        cuda_shim: pretend that there is a GPU.
        limit: seconds, after which the run is ended.
    """
    with tempfile.TemporaryDirectory(prefix=f"ddpify-{fixture.name}-") as scratch:
        home, work, record = (Path(scratch) / name for name in ("home", "work", "record"))
        for folder in (home, work, record):
            folder.mkdir()
        for name, content in sources.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size)]
        command = [sys.executable, *(launcher if world_size else []), fixture.entry, *fixture.args]
        environment = _environment(fixture, home, record, cuda_shim)
        rc, stdout, stderr = _execute(command, work, environment, limit)
        return Run(
            rc=rc,
            stdout=stdout.replace(str(work), "<work>"),
            stderr=stderr.replace(str(work), "<work>"),
            records={int(path.stem.removeprefix("rank")): list(_steps(path)) for path in record.glob("rank*.pkl")},
            files=contents.read(work, sources, original=fixture.folder / fixture.entry),
        )


def _environment(fixture: Fixture, home: Path, record: Path, cuda_shim: bool) -> dict[str, str]:
    paths = [RECORDER, REPOSITORY / "runtime"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "COLUMNS": "80",
        "HOME": str(home),
        "DDPIFY_RECORD": str(record),
        "DDPIFY_PRETEND": " ".join(["cuda_shim"] * cuda_shim + ["no_dynamo"] * (not fixture.compile)),
    }


def _execute(command: list[str], work: Path, environment: dict[str, str], limit: float) -> tuple[int, str, str]:
    """Return (rc, stdout, stderr); rc is 124 when the limit ended it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            rc = process.wait(limit)
        except subprocess.TimeoutExpired:
            rc = 124
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


def _steps(path: Path) -> Iterator[Step]:
    with path.open("rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield Step(*pickle.load(stream))
