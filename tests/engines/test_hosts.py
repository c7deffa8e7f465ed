"""Two hosts: the same script under each launcher finds its place and rank 0, and trains what one process trains."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ddpify.verify import compare, processes
from tests.e2e import fixtures, harness
from tests.engines.hosts import Host

RUN = (sys.executable, "-m", "ddpify", "run")


def test_torchrun_on_each(hosts: tuple[Host, Host]) -> None:
    names = ",".join(host.name for host in hosts)
    agents = [host.command([*RUN, "--hosts", names, "-n", "1"]) for host in hosts]
    require_equivalent(2, agents)


def test_torchrun_with_ranks_of_machines(hosts: tuple[Host, Host]) -> None:
    """torchrun itself, with its static rendezvous."""
    static = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", hosts[0].name, "--master-port", "29777"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *static]
    require_equivalent(2, [host.command([*torchrun, "--node-rank", str(rank)]) for rank, host in enumerate(hosts)])


def test_openmpi(hosts: tuple[Host, Host], folder: Path) -> None:
    remote = f"--mca plm_rsh_agent {folder}/rsh --mca btl_tcp_if_include cable --mca oob_tcp_if_include cable"
    require_equivalent(3, [from_first(hosts, 3, "openmpi", remote)])


def test_openmpi_by_several_addresses(hosts: tuple[Host, Host], folder: Path) -> None:
    """mpirun says all addresses of its host, the one of its bridge first."""
    require_equivalent(2, [from_first(hosts, 2, "openmpi", f"--mca plm_rsh_agent {folder}/rsh")])


def test_mpich(hosts: tuple[Host, Host], folder: Path) -> None:
    require_equivalent(3, [from_first(hosts, 3, "mpich", f"-launcher rsh -launcher-exec {folder}/rsh")])


def test_slurm(hosts: tuple[Host, Host], cluster: dict[str, str]) -> None:
    require_equivalent(3, [from_first(hosts, 3, "srun", "")], cluster)


def from_first(hosts: tuple[Host, Host], ranks: int, launcher: str, extra: str) -> list[str]:
    """The command line that starts a script from the first host, which has all processes but one."""
    options = [
        "--launcher",
        launcher,
        "--hosts",
        f"{hosts[0].name}:{ranks - 1},{hosts[1].name}:1",
        f"--launcher-args={extra}",
    ]
    return hosts[0].command([*RUN, *options])


def require_equivalent(
    ranks: int, launchers: Sequence[Sequence[str]], variables: Mapping[str, str] | None = None
) -> None:
    """Start the conversion of a fixture by all of these at once, and hold it against the original."""

    def start(
        words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
    ) -> tuple[int, str, str]:
        def run(launcher: Sequence[str]) -> tuple[int, str, str]:
            given = {**environment, **(variables or {})}
            return processes.execute([*launcher, "--", *words], folder, given, limit)

        with ThreadPoolExecutor() as pool:
            codes, outputs, errors = zip(*pool.map(run, launchers), strict=True)
        return max(codes), "".join(outputs), "".join(errors)

    fixture = fixtures.load("main_guard")
    original = harness.run_original(fixture)
    converted = harness.run_sources(fixture, harness.converted_sources(fixture), ranks, start=start)
    differences = list(compare.equivalent(original, converted, ranks, fixture.tolerance))
    differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])
