"""Runs a fixture's original and its conversions in real processes, and collects all that they leave behind."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ddpify.verify import contents, processes
from ddpify.verify.runs import Run, read_records
from tests import forked
from tests.e2e import fixtures
from tests.e2e.fixtures import Fixture

LIMIT = 120.0  # seconds that one run may take
PRETEND = Path(__file__).with_name("pretend")
REPOSITORY = Path(__file__).parents[2]

# With what torch imports when it first differentiates (sympy), which takes as long as most fixtures train.
INTERPRETER = (sys.executable, "torch", "torch.utils.data", "torch.fx.experimental.symbolic_shapes", "numpy")

# Runs a command line in a number of processes (0: without a launcher), in a folder and an environment, until it ends or
# for so many seconds; (exit code, stdout, stderr).
Start = Callable[[Sequence[str], int, Path, Mapping[str, str], float], tuple[int, str, str]]


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
    return run_sources(fixture, converted_sources(fixture), world_size, start=torchrun)


def run_converted_forked(fixture: Fixture, world_size: int) -> Run:
    """Run the script converted for cpu in forked processes."""
    return run_sources(fixture, converted_sources(fixture), world_size)


@functools.cache
def converted_sources(fixture: Fixture) -> dict[str, bytes]:
    """Return the files of the converted script, the unchanged ones too: relative path -> content."""
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    return original | fixtures.converted(fixture, "cpu")


def run_sources(
    fixture: Fixture,
    sources: Mapping[str, bytes],
    world_size: int = 0,
    cuda_shim: bool = False,
    limit: float = LIMIT,
    start: Start | None = None,
    settings: Mapping[str, str] | None = None,
) -> Run:
    """Run files in a new folder, and read what they leave there.

    Args:
        fixture: how to start them.
        sources: relative path -> content.
        world_size: number of processes; 0 for plain python.
        cuda_shim: pretend that there is a GPU.
        limit: seconds, after which the run is ended.
        start: what runs the script; forked processes by default.
        settings: further variables for the recorder.
    """
    with tempfile.TemporaryDirectory(prefix=f"ddpify-{fixture.name}-") as scratch:
        home, work, record = (Path(scratch) / name for name in ("home", "work", "record"))
        for folder in (home, work, record):
            folder.mkdir()
        for name, content in sources.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
        environment = _environment(fixture, home, record, cuda_shim) | dict(settings or {})
        words = [fixture.entry, *fixture.args]
        rc, stdout, stderr = (start or _forked)(words, world_size, work, environment, limit)
        return Run(
            rc=rc,
            stdout=stdout.replace(str(work), "<work>"),
            stderr=stderr.replace(str(work), "<work>"),
            records=read_records(record),
            files=contents.read(work, sources, original=fixture.folder / fixture.entry),
        )


def torchrun(
    words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    command = [sys.executable, *processes.torchrun(world_size), *words]
    return processes.execute(command, folder, environment, limit)


def _forked(
    words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    return forked.start(words, world_size, folder, environment, limit, INTERPRETER)


def _environment(fixture: Fixture, home: Path, record: Path, cuda_shim: bool) -> dict[str, str]:
    return processes.environment(record, [PRETEND, REPOSITORY / "runtime"]) | {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "COLUMNS": "80",
        "HOME": str(home),
        "DDPIFY_PRETEND": " ".join(["cuda_shim"] * cuda_shim + ["no_dynamo"] * (not fixture.compile)),
    }
