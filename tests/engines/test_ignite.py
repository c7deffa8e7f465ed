"""A script in the words of Ignite, started as its own documentation has it: each step as in one process."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from ddpify.verify import processes
from tests.e2e import fixtures, harness
from tests.e2e.test_plain import differences, plain
from tests.engines.hosts import Host
from tests.engines.test_launchers import HOROVOD, OWN
from tests.forked import free_port

NAME = "main_guard"


SPAWN = ("python", "SCRIPT", "--nproc_per_node", "2", "--backend", "gloo")
TORCHRUN = ("torchrun", "--standalone", "--nproc-per-node", "2", "--", "SCRIPT", "--backend", "gloo")
SRUN = ("srun", "--nodes=2", "--ntasks-per-node=1", "python", "SCRIPT", "--backend", "gloo")
HOROVODRUN = ("horovodrun", "-np", "2", "python", "SCRIPT", "--backend", "horovod")


@pytest.mark.parametrize("launcher", [SPAWN, pytest.param(TORCHRUN, marks=pytest.mark.nightly)], ids=lambda one: one[0])
def test_on_one_host(launcher: Sequence[str]) -> None:
    require_equivalent(launcher, {})


@pytest.mark.nightly
def test_under_slurm_on_two_hosts(hosts: tuple[Host, Host], cluster: dict[str, str]) -> None:
    require_equivalent(hosts[0].command(SRUN), cluster)


@pytest.mark.nightly
def test_under_horovodrun(tmp_path: Path) -> None:
    """Horovod's optimizer is one of its own and takes a step more (DDP623), so that only the end is compared."""
    weights = []
    for launcher, path in ((TORCHRUN, ""), (HOROVODRUN, f"{OWN}:")):
        folder = tmp_path / launcher[0]
        folder.mkdir()
        for name, content in plain(NAME, "ignite").items():
            (folder / name).write_bytes(content)
        fixture = fixtures.load(NAME)
        words, variables = [fixture.entry, *fixture.args], {"OMP_NUM_THREADS": "1"}
        here = {"PATH": f"{path}{Path(sys.executable).parent}:{os.environ['PATH']}"}
        rc, _, stderr = _run(launcher, here, words, 2, folder, {**os.environ, **variables}, harness.LIMIT)
        assert rc == 0, stderr[-3000:]
        state = torch.load(folder / "digits_cnn.pt")
        weights.append(torch.cat([each.double().flatten() for each in state.values()]))
    difference = float((weights[0] - weights[1]).norm() / weights[0].norm())
    assert weights[0].norm() > 0 and difference < 1e-6, difference


def require_equivalent(launcher: Sequence[str], variables: Mapping[str, str]) -> None:
    """Run a fixture's conversion by a command line, and hold it against the original on the same batches."""
    start = functools.partial(_run, launcher, variables)
    found = differences(fixtures.load(NAME), 2, target="ignite", start=start)
    assert not found, "\n".join(found)


def _run(
    launcher: Sequence[str],
    variables: Mapping[str, str],
    words: Sequence[str],
    world_size: int,
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
) -> tuple[int, str, str]:
    script, *arguments = words
    command = [script if word == "SCRIPT" else word for word in launcher] + arguments
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MASTER_PORT": free_port()}
    rc, *texts = processes.execute(command, folder, {**environment, **here, **variables}, limit)
    stdout, stderr = (HOROVOD.sub("", text) for text in texts)
    return rc, stdout, stderr
