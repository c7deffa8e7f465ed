"""A Slurm cluster of two nodes on this machine: its real daemons, as root, without systemd."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.engines.hosts import Host
from tests.forked import free_port

LIMIT = 60.0  # seconds until both nodes have to be there


@contextlib.contextmanager
def cluster(folder: Path, hosts: Sequence[Host] = ()) -> Iterator[dict[str, str]]:
    """The variables with which srun and sbatch find a cluster, which is there until the block ends.

    Args:
        folder: for its files; a short path, since a socket lies there. hosts: where the nodes are, of their own names;
            by default both are on this machine, and their names known to Slurm alone.
    """
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key, settings = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    files = [f"--{kind}={folder}/munge.{kind}" for kind in ("socket", "pid-file", "log-file", "seed-file")]
    settings.write_text(_settings(folder, hosts))
    environment = {"SLURM_CONF": str(settings)}
    path = os.environ["PATH"] + ":/usr/sbin"
    names = [host.name for host in hosts] or ["n1", "n2"]
    daemons = [["munged", "--force", f"--key-file={key}", *files], ["slurmctld", "-c", "-f", str(settings)]]
    daemons += [["slurmd", "-N", name, "-f", str(settings)] for name in names]
    places = [None, hosts[0], *hosts] if hosts else [None] * 4
    try:
        for place, daemon in zip(places, daemons, strict=True):
            command = place.command(daemon) if place else daemon
            subprocess.run(command, check=True, timeout=LIMIT, env=os.environ | environment | {"PATH": path})
            if daemon[0] == "slurmctld":  # a node that does not find it is long in coming again
                _wait(["scontrol", "ping"], "UP", environment, place)
        _wait(["sinfo", "--noheader", "--format=%T"], "idle", environment, hosts[0] if hosts else None)
        yield environment
    finally:
        for file in [*sorted(folder.glob("*.pid"), reverse=True), folder / "munge.pid-file"]:  # slurmd before slurmctld
            with contextlib.suppress(OSError, ValueError):
                _end(int(file.read_text()))


def _settings(folder: Path, hosts: Sequence[Host]) -> str:
    name, ports = socket.gethostname(), [int(free_port()) for _ in range(3)]
    if hosts:
        nodes = [f"NodeName={host.name} NodeAddr={host.name} Port={ports[1]}" for host in hosts]
        controller = hosts[0].name
    else:
        pairs = zip(("n1", "n2"), ports[1:], strict=True)
        nodes = [f"NodeName={node} NodeHostname={name} NodeAddr=127.0.0.1 Port={port}" for node, port in pairs]
        controller = f"{name}(127.0.0.1)"
    return f"""\
ClusterName=test
SlurmctldHost={controller}
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""" + "".join(f"{node} CPUs=4 RealMemory=1000\n" for node in nodes)


def _wait(command: list[str], answer: str, environment: dict[str, str], host: Host | None) -> None:
    """Wait until what a command prints ends with an answer, in a line alone."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done = subprocess.run(
            host.command(command) if host else command,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stdout.splitlines()
        if len(lines) == 1 and lines[0].split()[-1:] == [answer]:
            return
        time.sleep(0.1)
    raise AssertionError(f"Slurm is not there: {command[0]} says {done.stdout}{done.stderr}")


def _end(process: int) -> None:
    os.kill(process, signal.SIGTERM)
    for _ in range(100):
        time.sleep(0.05)
        os.kill(process, 0)
    os.kill(process, signal.SIGKILL)
