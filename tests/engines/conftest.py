"""Hosts and clusters, made once for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import slurm
from tests.engines.hosts import Host, two_hosts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the files of hosts and clusters."""
    return tmp_path_factory.mktemp("hosts")


@pytest.fixture(scope="module")
def hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts."""
    with two_hosts(folder) as pair:
        yield pair


@pytest.fixture(scope="module")
def cluster(hosts: tuple[Host, Host], folder: Path) -> Iterator[dict[str, str]]:
    """The variables of a Slurm cluster with a node on each of the two hosts."""
    with slurm.cluster(folder, hosts) as variables:
        yield variables


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of a Slurm cluster on this machine alone."""
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as variables:
        yield variables
