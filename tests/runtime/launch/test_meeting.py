"""Where rank 0 is: what Slurm writes, and what mpirun says of itself. Asking mpirun for real: tests/engines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from ddpify_runtime.launch.meeting import first_host, free_port, horovod, open_mpi, slurm

RUN = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_MCA_ess_base_jobid": "77"}


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node1", "node1"),
        ("node1,node2", "node1"),
        ("node[01-03,7]", "node01"),
        ("node[7,01-03]", "node7"),
        ("gpu-[003-128]-ib", "gpu-003-ib"),
        ("rack[2-3]n[10-12],login", "rack2n10"),
        ("login,node[1-2]", "login"),
    ],
)
def test_the_first_of_a_node_list(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


def test_steps_of_one_job_meet_at_ports_of_their_own() -> None:
    step = {"SLURM_JOB_ID": "1", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_ID": "0"}
    assert slurm(step, 1) == slurm(step, 0)
    assert slurm(step, 0)[0] == "127.0.0.1"
    assert slurm(step, 0)[1] != slurm({**step, "SLURM_STEP_ID": "1"}, 0)[1]


def said(addresses: str, port: int, here: str = "5.0") -> Mapping[str, str]:
    uri = f";tcp://{addresses}:{port}"
    return {**RUN, "OMPI_MCA_orte_hnp_uri": f"5.0{uri}", "OMPI_MCA_orte_local_daemon_uri": f"{here}{uri}"}


def test_the_address_of_mpirun_that_answers() -> None:
    with socket.socket() as mpirun:
        mpirun.bind(("127.0.0.1", 0))
        mpirun.listen()
        port = mpirun.getsockname()[1]
        assert open_mpi(said("127.0.0.2,127.0.0.1", port), 1)[0] == "127.0.0.1"
    with pytest.raises(RuntimeError, match="mpirun -x MASTER_ADDR=HOST"):
        open_mpi(said("127.0.0.2,127.0.0.1", free_port()), 1)


def test_rank_0_knows_that_it_is_not_where_mpirun_is() -> None:
    assert open_mpi(said("10.0.0.1", 1), 0)[0] == "10.0.0.1"
    with pytest.raises(RuntimeError, match="the host of rank 0 is not known"):
        open_mpi(said("10.0.0.1", 1, here="5.1"), 0)


def test_on_one_machine_by_loopback() -> None:
    alone = {**RUN, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert open_mpi(alone, 0) == open_mpi(alone, 1)
    assert open_mpi(alone, 0)[0] == "127.0.0.1"


class Words(BaseHTTPRequestHandler):
    """What horovodrun keeps for its processes: PUT writes a word, GET reads it, 404 as long as it is not there."""

    kept: ClassVar[dict[str, bytes]] = {}
    asked = threading.Event()

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        self._answer(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))
        self.asked.set()

    def _answer(self, status: int, words: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


def test_horovodrun_passes_on_what_rank_0_says() -> None:
    with HTTPServer(("127.0.0.1", 0), Words) as server:
        threading.Thread(target=server.serve_forever).start()
        two = {"HOROVOD_SIZE": "2", "HOROVOD_LOCAL_SIZE": "1", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1"}
        two["HOROVOD_GLOO_RENDEZVOUS_PORT"] = str(server.server_port)
        found: list[tuple[str, int]] = []
        asks = threading.Thread(target=lambda: found.append(horovod({**two, "HOROVOD_HOSTNAME": "b"}, 1)))
        asks.start()
        assert Words.asked.wait(60)  # rank 1 asks before there is an answer
        host, port = horovod({**two, "HOROVOD_HOSTNAME": "a"}, 0)
        asks.join(60)
        server.shutdown()
    assert host == "a"
    assert found == [("a", port)]
