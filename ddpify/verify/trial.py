"""Runs one version of a script in a scratch copy of its project, with the recorder in it."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ddpify.verify import contents, processes, scratch
from ddpify.verify.runs import Run, read_records
from ddpify.verify.scratch import Project


@dataclass(frozen=True)
class Trial:
    """What is the same for all runs.

    project: what gets copied. folder: where the script is started, a folder of the project. original: the script whose
    classes saved files need. arguments: of the script. steps: optimizer steps, after which a run ends; 0 for all.
    limit: seconds that a run may take. options: further variables for the recorder. hashes: whether each rank but the
    first hashes strings otherwise than the original, as it would without PYTHONHASHSEED. modules: the names of scripts
    that are started by `python -m name`.
    """

    project: Project
    folder: Path
    original: Path
    arguments: tuple[str, ...]
    steps: int
    limit: float
    processes: int
    options: Mapping[str, str]
    hashes: bool = False
    modules: Mapping[Path, str] = field(default_factory=dict)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ddpify-verify-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def run(trial: Trial, script: Path, changed: Mapping[Path, bytes], world_size: int, options: Mapping[str, str]) -> Run:
    """Run a script to its end, to its last step or to the time limit.

    Args:
        trial: what all runs share. script: the file to start. changed: files of the project with other content.
        world_size: processes under torchrun; 0 for plain python. options: variables for the recorder, of this run only.
    """
    project = trial.project
    with _scratch() as place:
        work, record, temporary, logs = (place / name for name in ("work", "record", "tmp", "logs"))
        for folder in (record, temporary, logs):
            folder.mkdir()
        scratch.make(project, work, changed)
        before = scratch.states(work)
        folders = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_dir()}
        start = _start(trial, script, work)
        if world_size:
            launcher = [*processes.torchrun(world_size), "--redirects", "3", "--log-dir", str(logs)]
            if trial.hashes:
                shell = ("sh", "-c", 'PYTHONHASHSEED=$RANK exec "$@"', "sh", sys.executable, "-u")
                start = [*launcher, "--no-python", "--", *shell, *start]
            else:
                start = [*launcher, *start[:-1], "--", start[-1]]  # else the script's `--s` might be torchrun's
        environment = processes.environment(record, _python_path(project.root, work)) | {
            "TMPDIR": str(temporary),
            "DDPIFY_STEPS": str(trial.steps),
            "DDPIFY_SCRATCH": str(place),
            "DDPIFY_PROTECT": os.pathsep.join(map(str, project.protected)),
            **trial.options,
            **options,
        }
        for variable, value in _defaults(trial.processes).items():
            environment.setdefault(variable, value)
        command = [sys.executable, *start, *trial.arguments]
        rc, stdout, stderr = processes.execute(
            command, work / trial.folder.relative_to(project.root), environment, trial.limit
        )
        after = scratch.states(work)
        unchanged = {name for name in before if before[name] == after.get(name)}
        written = {rank: (_log(logs, rank, "stdout"), _log(logs, rank, "stderr")) for rank in range(world_size)}
        if written:
            stdout = written[0][0]
            stderr = "".join(text for _, text in written.values()) if rc else written[0][1]

        def named(text: str) -> str:
            return text.replace(str(work), str(project.root))

        return Run(
            rc=rc,
            stdout=named(stdout),
            stderr=named(stderr),
            records=read_records(record),
            files=contents.read(work, folders | unchanged, trial.original),
            others={rank: named(texts[0]) for rank, texts in written.items() if rank},
        )


def _start(trial: Trial, script: Path, work: Path) -> list[str]:
    """What starts a script in the copy of its project, after the interpreter."""
    if script in trial.modules:
        return ["-m", trial.modules[script]]
    root = trial.project.root
    return [os.path.relpath(work / script.relative_to(root), work / trial.folder.relative_to(root))]


def _log(folder: Path, rank: int, name: str) -> str:
    """What torchrun has kept of a rank's output."""
    paths = sorted(folder.glob(f"*/attempt_*/{rank}/{name}.log"))
    return paths[-1].read_bytes().decode("utf-8", "replace") if paths else ""  # with its "\r"


def _python_path(root: Path, work: Path) -> list[str]:
    """PYTHONPATH with the copy in place of the project, and the packages of ddpify at its end."""
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    places = [Path(entry).resolve() for entry in entries]
    moved = [str(work / p.relative_to(root)) if p.is_relative_to(root) else str(p) for p in places]
    runtime = importlib.util.find_spec("ddpify_runtime")
    own = [str(Path(runtime.origin).parents[1])] if runtime and runtime.origin else []
    return [*moved, *own]


def _threads(count: int) -> int:
    return max(1, (os.cpu_count() or 1) // count)


def _defaults(count: int) -> dict[str, str]:
    """Equal for all runs, so that the same operations round alike; no window waits for anyone."""
    return {"OMP_NUM_THREADS": str(_threads(count)), "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "COLUMNS": "80"}


def other_threads(count: int, number: int) -> int:
    """How many threads a control run has: another number than the runs of as many processes, so that sums are others.

    The gradient of a convolution is a sum over all pixels of a batch, whose terms nearly cancel: of one batch, added up
    in another order, it may differ by 3e-6, and the ranks, each with its rows, do add it up in another order.

    Args:
        count: the processes of the other run. number: of the control run, from 0 on.
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    usual = int(given) if given.isdigit() else _threads(count)
    others = [each for each in range(1, max(2, os.cpu_count() or 1) + 1) if each != usual]
    return others[number % len(others)]


def failure(run: Run, lines: int = 12) -> Sequence[str]:
    """The last lines that a failed run wrote, indented: the traceback, as a rule."""
    kept = [line for line in run.stderr.rstrip().splitlines() if line.strip()]
    return [f"    {line}" for line in kept[-lines:]]
