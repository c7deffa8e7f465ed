"""Every launcher for real: `ddpify run --launcher L` of converted fixtures, held against one process at every step.

By day each has one fixture; torchrun and spawn run others in tests/e2e.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ddpify.verify import compare, processes
from tests.e2e import fixtures, harness

CASES = (("main_guard", 2), ("ragged", 3))
HOROVOD = re.compile(r"^\[\d+\]<std(?:out|err)>:", re.MULTILINE)  # what horovodrun writes before each line
OWN = Path(__file__).parents[2] / ".venv-engines" / "bin"  # Intel MPI and Horovod


def by_day(case: tuple[str, int]) -> list[Any]:
    """Both cases; the other than this one by night alone."""
    return [pytest.param(*each, marks=[] if each == case else pytest.mark.nightly) for each in CASES]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "ranks"), CASES)
@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_processes_of_torch_train_the_same(launcher: str, name: str, ranks: int) -> None:
    require_equivalent(name, ranks, {}, "--launcher", launcher)


@pytest.mark.parametrize(("name", "ranks"), by_day(("main_guard", 2)))
def test_open_mpi(name: str, ranks: int) -> None:
    require_equivalent(name, ranks, {}, "--launcher", "openmpi")


@pytest.mark.parametrize(("name", "ranks"), by_day(("ragged", 3)))
def test_mpich(name: str, ranks: int) -> None:
    require_equivalent(name, ranks, {}, "--launcher", "mpich")


@pytest.mark.parametrize(("name", "ranks"), by_day(("ragged", 3)))
def test_under_slurm(name: str, ranks: int, nodes: dict[str, str]) -> None:
    require_equivalent(name, ranks, nodes, "--launcher", "srun")


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "ranks"), CASES)
@pytest.mark.parametrize("launcher", ["intelmpi", "horovodrun"])
def test_with_an_environment_of_its_own(launcher: str, name: str, ranks: int) -> None:
    require_equivalent(name, ranks, {"PATH": f"{OWN}:{os.environ['PATH']}"}, "--launcher", launcher)


def require_equivalent(name: str, ranks: int, variables: Mapping[str, str], *words: str) -> None:
    """Run a fixture's conversion by `ddpify run` with these options, and hold it against the original."""
    fixture = fixtures.load(name)
    original = harness.run_original(fixture)
    start = functools.partial(_run, variables, words)
    converted = harness.run_sources(fixture, harness.converted_sources(fixture), ranks, start=start)
    differences = list(compare.equivalent(original, converted, ranks, fixture.tolerance))
    differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])


def _run(
    variables: Mapping[str, str],
    options: Sequence[str],
    words: Sequence[str],
    world_size: int,
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
) -> tuple[int, str, str]:
    script, *arguments = words
    command = [sys.executable, "-m", "ddpify", "run", "-n", str(world_size), *options, script, "--", *arguments]
    rc, *texts = processes.execute(command, folder, {**environment, **variables}, limit)
    stdout, stderr = (HOROVOD.sub("", text) for text in texts)
    return rc, stdout, stderr
