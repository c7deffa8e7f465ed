"""An elastic run on two hosts, for real: one of them is lost, the other goes on; it comes back, both go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.engines.hosts import Host

LIMIT = 300.0  # seconds until something has to have happened; without a way around torch's bug it never does

SCRIPT = """\
import os, time
import torch, torch.distributed as dist
from ddpify_runtime import destroy_process_group, get_rank, get_world_size, init_process_group, rank_zero_value
init_process_group("gloo")
while not rank_zero_value(os.path.exists)("stop"):
    found = torch.ones(1)
    if dist.is_initialized():
        dist.all_reduce(found)
    if get_rank() == 0:
        open("worlds", "a").write(f"{int(found)}\\n")
    time.sleep(0.1)
destroy_process_group()
"""


def test_a_host_is_lost_and_comes_back(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    worlds = tmp_path / "worlds"
    names = ",".join(host.name for host in hosts)
    command = [sys.executable, "-m", "ddpify", "run", "-n", "1", "--nnodes", "1:2", "--hosts", names, "train.py"]

    log = (tmp_path / "log").open("ab")
    started = []

    def start(host: Host) -> None:
        given = os.environ | {"OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen(host.command(command), cwd=tmp_path, env=given, stdout=log, stderr=log))

    def until(world: str) -> None:
        end = time.monotonic() + LIMIT
        while not (worlds.exists() and worlds.read_text().endswith(f"{world}\n")):
            assert time.monotonic() < end and started[0].poll() is None, (tmp_path / "log").read_text()[-5000:]
            time.sleep(0.1)

    try:
        start(hosts[0])
        until("1")
        start(hosts[1])
        until("2")
        kill(hosts[1])
        until("1")
        start(hosts[1])
        until("2")
        (tmp_path / "stop").touch()
        assert started[0].wait(LIMIT) == 0, (tmp_path / "log").read_text()[-5000:]
    finally:
        for host in hosts:
            kill(host)
        for process in started:
            process.wait(60)
        log.close()


def kill(host: Host) -> None:
    """End every process of a host at once."""
    listed = subprocess.run(["ip", "netns", "pids", host.name], capture_output=True, text=True, check=True, timeout=60)
    for pid in listed.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
