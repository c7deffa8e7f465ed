"""Where the processes of a run meet: the host of rank 0, and a port that is free there.

torchrun says it. The others are asked in their own ways; where one cannot say, the run ends with a line about what to
pass. A host is known by loopback where all processes are on one machine.
"""

from __future__ import annotations

import re
import socket
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
PATIENCE = 60.0  # seconds that a process waits for what rank 0 writes down
PROBE = 3.0  # seconds for one attempt to reach a host


def given(environ: Mapping[str, str], rank: int) -> tuple[str, int]:
    """For launchers that set MASTER_ADDR and MASTER_PORT: they have not.

    Raises:
        RuntimeError: always.
    """
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environ]
    raise RuntimeError(
        f"RANK and WORLD_SIZE are set, but not {' and '.join(missing)}: start with torchrun, or set them to the host "
        "of rank 0 and to a free port there"
    )


def slurm(environ: Mapping[str, str], rank: int) -> tuple[str, int]:
    """The first host of the step's node list; a port that follows from the numbers of job and step.

    Raises:
        RuntimeError: rank 0 is not on that host, as with an arbitrary distribution of tasks.
    """
    port = _port(f"{environ['SLURM_JOB_ID']}.{environ['SLURM_STEP_ID']}")
    if environ["SLURM_STEP_NUM_NODES"] == "1":
        return LOOPBACK, port
    if rank == 0 and environ["SLURM_NODEID"] != "0":
        raise RuntimeError("Slurm put rank 0 on another node than the first: pass MASTER_ADDR, the host of rank 0")
    return first_host(environ["SLURM_STEP_NODELIST"]), port


def first_host(nodes: str) -> str:
    """The first of the hosts that Slurm writes together: `node01` for `node[01-03,7],gpu2`."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first is not None
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first.group())


def open_mpi(environ: Mapping[str, str], rank: int) -> tuple[str, int]:
    """The host of mpirun itself, if rank 0 is there; a port that follows from the number of the run.

    Open MPI tells every process how its mpirun is reached, `1612972032.0;tcp://192.0.2.2,172.17.0.1:51005;…`, and how
    the daemon of its own host is: on mpirun's host that is mpirun.

    Raises:
        RuntimeError: rank 0 is elsewhere, or mpirun cannot be reached.
    """
    port = _port(environ.get("OMPI_MCA_ess_base_jobid") or environ.get("PMIX_NAMESPACE", ""))
    if environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environ["OMPI_COMM_WORLD_SIZE"]:
        return LOOPBACK, port
    mpirun, here = (environ.get(f"OMPI_MCA_orte_{name}", "") for name in ("hnp_uri", "local_daemon_uri"))
    found = re.search(r"tcp://([^:;]+):(\d+)", mpirun)
    if found and (rank or mpirun.split(";")[0] == here.split(";")[0]):
        addresses = found[1].split(",")
        reached = addresses[0] if len(addresses) == 1 else _reached(addresses, int(found[2]))
        if reached:
            return reached, port
    raise RuntimeError("the host of rank 0 is not known: mpirun -x MASTER_ADDR=HOST, the first host of -H")


def _reached(addresses: list[str], port: int) -> str:
    """The first address that answers: the others may be bridges that every machine has for itself."""
    for address in addresses:
        try:
            socket.create_connection((address, port), PROBE).close()
        except OSError:
            continue
        return address
    return ""


def hydra(environ: Mapping[str, str], rank: int) -> tuple[str, int]:
    """What rank 0 has written down with mpirun, for MPICH and Intel MPI.

    Their processes have a line to mpirun, PMI_FD, on which they exchange such things in words (the PMI-1 protocol). A
    process that has said `init` and ends without `finalize` is taken for a failure: mpirun ends the others.

    Raises:
        RuntimeError: there is no such line, or the script's own MPI has it.
    """
    if "mpi4py.MPI" in sys.modules:
        raise RuntimeError(
            "mpi4py was imported before the processes could find each other: pass MASTER_ADDR and MASTER_PORT"
        )
    try:
        line = socket.socket(fileno=int(environ["PMI_FD"]))
    except (KeyError, OSError):
        raise RuntimeError("mpirun cannot be asked where rank 0 is: pass MASTER_ADDR and MASTER_PORT") from None
    with line.makefile("rw", encoding="ascii") as stream:

        def ask(words: str) -> dict[str, str]:
            stream.write(f"cmd={words}\n")
            stream.flush()
            return dict(word.split("=", 1) for word in stream.readline().split() if "=" in word)

        if ask("init pmi_version=1 pmi_subversion=1").get("rc") != "0":
            raise RuntimeError("mpirun does not speak PMI 1: pass MASTER_ADDR and MASTER_PORT")
        space = ask("get_my_kvsname")["kvsname"]
        if rank == 0:
            alone = environ.get("MPI_LOCALNRANKS") == environ["PMI_SIZE"]
            host = LOOPBACK if alone else socket.gethostname()
            ask(f"put kvsname={space} key=ddpify value={host}:{free_port()}")
        ask("barrier_in")
        host, port = ask(f"get kvsname={space} key=ddpify")["value"].split(":")
        ask("finalize")
    line.detach()  # it is mpirun's to close
    return host, int(port)


def horovod(environ: Mapping[str, str], rank: int) -> tuple[str, int]:
    """What rank 0 has written down with horovodrun, which keeps words for its processes (an HTTP server).

    Raises:
        RuntimeError: it does not answer, or rank 0 has written nothing.
    """
    if environ["HOROVOD_LOCAL_SIZE"] == environ["HOROVOD_SIZE"]:
        host = LOOPBACK
    else:
        host = environ.get("HOROVOD_HOSTNAME", "") or socket.gethostname()
    server = f"{environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}"
    place = f"http://{server}/ddpify/rank-0"
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    if rank == 0:
        value = f"{host}:{free_port()}".encode()
        without_proxy.open(urllib.request.Request(place, value, method="PUT"), timeout=PATIENCE).close()
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with without_proxy.open(place, timeout=PATIENCE) as answer:
                host, port = answer.read().decode().split(":")
                return host, int(port)
        except urllib.error.HTTPError as error:  # not yet written
            if error.code != 404 or time.monotonic() > end:
                raise RuntimeError(f"horovodrun does not say where rank 0 is: {error}") from None
        time.sleep(0.05)


def free_port() -> int:
    """A port of this machine that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _port(run: str) -> int:
    """A port that all processes of a run know without asking: below those that Linux gives to outgoing connections."""
    return 20000 + zlib.crc32(run.encode()) % 12000
