"""ddpify run: the command lines that it makes, what it prints for clusters, and what it does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ddpify.command import ROOT, TRAIN, ddpify, environment, lines, put

CONVERTED = "from ddpify_runtime import init_process_group\ninit_process_group('{}')\n"
HEARTBEAT = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"
ELASTIC = f"--max-restarts 3 --rdzv-conf {HEARTBEAT}"
MEETING = "--rdzv-backend c10d --rdzv-endpoint a:29400 --rdzv-id ddpify"
AS_ROOT = "--allow-run-as-root " if os.geteuid() == 0 else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A converted script, and an mpirun of every kind that says its version."""
    put(tmp_path, train=CONVERTED.format("gloo"))
    programs = {"mpirun.openmpi": "mpirun.openmpi (OpenRTE) 4.1.4", "mpirun.mpich": "HYDRA build details:"}
    for name, version in {**programs, "mpirun": "Intel(R) MPI Library", "srun": "", "horovodrun": ""}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("text", [CONVERTED.format("horovod"), "import horovod.torch as hvd\nhvd.init()\n"])
def test_a_target_may_have_a_launcher_of_its_own(folder: Path, text: str) -> None:
    put(folder, train=text)
    command = run(folder, "-n", "2", "--dry-run", OMP_NUM_THREADS="1")
    assert command == f"horovodrun -np 2 {sys.executable} train.py\n"
    done = ddpify("run", "train.py", "-n", "2", "--launcher", "torchrun", cwd=folder, code=2)
    assert lines(done.stderr) == ["train.py: is started by horovodrun, not by torchrun; leave --launcher out"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("", "PYTHON train.py"),
        ("-n 1", "DDPIFY_NPROC=1 PYTHON train.py"),
        ("-n 2", "torchrun --standalone --nproc-per-node 2 -- train.py"),
        ("--nproc 2 --launcher spawn", "PYTHON -m ddpify_runtime.launch.spawn 2 train.py"),
        ("-n 4 --launcher openmpi", f"mpirun.openmpi -np 4 --bind-to none {AS_ROOT}--oversubscribe PYTHON train.py"),
        (
            "--hosts a:2,b:1 --launcher openmpi",
            f"mpirun.openmpi -np 3 --bind-to none {AS_ROOT}-H a:2,b:1 -x OMP_NUM_THREADS PYTHON train.py",
        ),
        ("--hosts a,b -n 2 --launcher mpich", "mpirun.mpich -n 4 -hosts a:2,b:2 PYTHON train.py"),
        ("-n 2 --launcher intelmpi", "mpirun -n 2 PYTHON train.py"),
        ("--hosts a:2,b:2 --launcher horovodrun", "horovodrun -np 4 -H a:2,b:2 PYTHON train.py"),
        (
            "-n 2 --nnodes 3 --launcher srun",
            "srun --kill-on-bad-exit=1 --quit-on-interrupt --nodes 3 --ntasks 6 PYTHON train.py",
        ),
        ("--hosts a,b -n 2", f"torchrun --nproc-per-node 2 --nnodes 2 {MEETING} -- train.py"),
        ("-n 2 --max-restarts 3", f"torchrun --standalone --nproc-per-node 2 {ELASTIC} -- train.py"),
        ("-n 1 --nnodes 1:2 --hosts a,b", f"torchrun --nproc-per-node 1 --nnodes 1:2 {MEETING} {ELASTIC} -- train.py"),
        ("-n 2 --launcher-args=--redirects=3", "torchrun --standalone --nproc-per-node 2 --redirects=3 -- train.py"),
    ],
)
def test_the_command(folder: Path, words: str, command: str) -> None:
    done = run(folder, *words.split(), "--dry-run", OMP_NUM_THREADS="1")
    shown = done.replace(sys.executable, "PYTHON").removeprefix("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 ")
    assert shown == f"{command}\n"
    assert done.startswith("TORCH_DISABLE") == ("rdzv-conf" in command)


def test_modules_and_arguments_are_passed_on(folder: Path) -> None:
    done = run(folder, "-m", "train", "-n", "2", "--dry-run", "--", "--s", "0.1", "a b", OMP_NUM_THREADS="1")
    assert done == "torchrun --standalone --nproc-per-node 2 -m -- train --s 0.1 'a b'\n"


def test_each_process_has_its_share_of_the_cores(folder: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    for processes in (2, 2 * cores):
        shown = run(folder, "-n", str(processes), "--dry-run", OMP_NUM_THREADS=None)
        assert shown.startswith(f"OMP_NUM_THREADS={max(1, cores // processes)} torchrun ")


def test_slurm_is_at_hand_inside_an_allocation(folder: Path) -> None:
    """With all of its tasks; and not inside a step, which is one of them."""
    found = run(folder, "--dry-run", SLURM_JOB_ID="7", SLURM_CPUS_PER_TASK="4", OMP_NUM_THREADS=None)
    step = "srun --kill-on-bad-exit=1 --quit-on-interrupt --cpus-per-task 4"
    assert found == f"OMP_NUM_THREADS=4 {step} {sys.executable} train.py\n"
    one = run(folder, "--dry-run", "-n", "1", SLURM_JOB_ID="7", OMP_NUM_THREADS="1")
    assert "--quit-on-interrupt --nodes 1 --ntasks 1 " in one
    inside = run(folder, "--dry-run", "-n", "2", SLURM_JOB_ID="7", SLURM_STEP_ID="0", OMP_NUM_THREADS="1")
    assert inside.startswith("torchrun")


@pytest.mark.parametrize("call", ["idist.initialize(launched.backend)", "with idist.Parallel() as parallel:\n    pass"])
def test_a_script_of_ignite(folder: Path, call: str) -> None:
    put(folder, train=f"import ignite.distributed as idist\n{call}\n")
    done = ddpify("run", "train.py", "-n", "2", "--dry-run", cwd=folder)
    assert done.stdout.endswith(b"--nproc-per-node 2 -- train.py\n")


def test_a_script_with_torch_alone(folder: Path) -> None:
    """--style plain knows torchrun's variables and no others."""
    put(folder, train="import torch.distributed as dist\ndist.init_process_group('gloo')\n")
    assert run(folder, "-n", "2", "--dry-run", SLURM_JOB_ID="7", OMP_NUM_THREADS="1").startswith("torchrun")
    for words in ((), ("-n", "1")):  # python alone sets no RANK
        done = ddpify("run", "train.py", *words, "--dry-run", cwd=folder)
        assert done.stdout.endswith(b"torchrun --standalone --nproc-per-node 1 -- train.py\n")
    done = ddpify("run", "train.py", "--launcher", "python", cwd=folder, code=2)
    what = "asks for variables that torchrun sets, which python alone does not"
    assert lines(done.stderr) == [f"train.py: {what}; --launcher torchrun"]
    done = ddpify("run", "train.py", "--launcher", "srun", cwd=folder, code=2)
    what = "uses torch alone, which does not know srun's variables"
    assert lines(done.stderr) == [f"train.py: {what}; --launcher torchrun"]


def test_a_script_that_starts_torchrun_itself_or_finds_its_rank_elsewhere_is_started_by_python(folder: Path) -> None:
    join = "import torch.distributed as dist\ndist.init_process_group('{}')\n"
    own = "import torch.distributed.run\n"
    for text in (own + join.format("gloo"), join.format("mpi"), join.format("xla") + "import torch_xla\n"):
        put(folder, train=text)
        done = ddpify("run", "train.py", "--dry-run", cwd=folder)
        assert done.stdout.decode() == f"{sys.executable} train.py\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--nproc 0", "ddpify run: 0 processes train nothing; --nproc 1, or leave it out"),
        (
            "--launcher torchrum",
            "ddpify run: no launcher 'torchrum', did you mean 'torchrun'?; "
            "one of torchrun, spawn, srun, openmpi, mpich, intelmpi, horovodrun, python",
        ),
        ("--emit pbs", "ddpify run: no form to emit 'pbs'; one of sbatch, k8s, hostfile"),
        ("--nnodes 2:1", "ddpify run: --nnodes 2:1; --nnodes 2, or --nnodes 1:2, least and most"),
        ("--nnodes x", "ddpify run: --nnodes x; --nnodes 2, or --nnodes 1:2, least and most"),
        ("--nnodes 2", "train.py: torchrun needs the names of 2 machines; --hosts node1,node2"),
        ("--hosts a:x,b", "ddpify run: --hosts: 'a:x' is no host; --hosts node1:4,node2:4"),
        (
            "--hosts a:1,b:2",
            "train.py: torchrun starts as many processes on each machine; --nproc N, and --hosts without numbers",
        ),
        ("--hosts a,b --launcher spawn", "train.py: spawn starts processes on this machine only; --launcher torchrun"),
        ("--max-restarts 1 --launcher mpich", "train.py: mpich does not start processes again; --launcher torchrun"),
        ("--launcher spawn --launcher-args x", "train.py: spawn knows no options; leave --launcher-args out"),
        ("--emit hostfile", "ddpify run: --emit hostfile needs hosts; --hosts node1:4,node2:4"),
        ("--emit k8s --nnodes 1:2", "train.py: --emit k8s is for a number of machines that stays; --nnodes N"),
        (
            "--launcher openmpi",
            "ddpify run: no mpirun of openmpi here; apt-get install openmpi-bin, or --launcher torchrun",
        ),
        ("--launcher mpich", "ddpify run: no mpirun of mpich here; apt-get install mpich, or --launcher torchrun"),
        ("--launcher srun", "ddpify run: no srun here; start it where Slurm is, or --emit sbatch"),
        ("--launcher horovodrun", "ddpify run: no horovodrun here; pip install horovod, or --launcher torchrun"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_one_line(tmp_path: Path, words: str, line: str) -> None:
    """On a machine that has no launcher but torch's."""
    put(tmp_path, train=CONVERTED.format("gloo"))
    assert lines(ddpify("run", "train.py", *words.split(), cwd=tmp_path, code=2, PATH="").stderr) == [line]


def test_scripts_that_are_none(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, xla=CONVERTED.format("xla"))
    assert lines(ddpify("run", "other.py", cwd=tmp_path, code=2).stderr)[0].startswith("other.py: ")
    not_converted = "train.py: is not converted; ddpify train.py --target T"
    assert lines(ddpify("run", "train.py", cwd=tmp_path, code=2).stderr) == [not_converted]
    for_xla = "xla.py: is for XLA devices, which torchrun does not start; leave --launcher out"
    assert lines(ddpify("run", "xla.py", "--launcher", "torchrun", cwd=tmp_path, code=2).stderr) == [for_xla]


def test_a_batch_script_for_slurm(folder: Path) -> None:
    put(folder, train=CONVERTED.format("nccl"))
    words = ["--emit", "sbatch", "-n", "4", "--nnodes", "2", "--", "--lr", "0.1"]
    assert run(folder, *words).splitlines() == [
        "#!/bin/bash",
        "#SBATCH --job-name=train",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --gpus-per-node=4",
        "",
        "srun --kill-on-bad-exit=1 python train.py --lr 0.1",
    ]


def test_a_manifest_for_kubernetes(folder: Path) -> None:
    import yaml

    put(folder, train=CONVERTED.format("nccl"))
    job = yaml.safe_load(run(folder, "--emit", "k8s", "-n", "4", "--nnodes", "3", "--", "--name", 'a "b" \\'))
    assert (job["apiVersion"], job["kind"], job["metadata"]) == ("kubeflow.org/v1", "PyTorchJob", {"name": "train"})
    assert job["spec"]["nprocPerNode"] == "4"
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert {kind: spec["replicas"] for kind, spec in replicas.items()} == {"Master": 1, "Worker": 2}
    for spec in replicas.values():
        (container,) = spec["template"]["spec"]["containers"]
        assert container["name"] == "pytorch"  # the one that the operator gives torchrun's variables to
        assert container["command"] == ["torchrun", "--", "train.py", "--name", 'a "b" \\']
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}


@pytest.mark.parametrize(("launcher", "text"), [("openmpi", "a slots=2\nb slots=3\n"), ("mpich", "a:2\nb:3\n")])
def test_a_list_of_hosts(folder: Path, launcher: str, text: str) -> None:
    assert run(folder, "--emit", "hostfile", "--hosts", "a:2,b:3", "--launcher", launcher) == text


@pytest.mark.parametrize("launcher", ["spawn", pytest.param("torchrun", marks=pytest.mark.nightly)])
def test_the_status_is_that_of_the_script(folder: Path, launcher: str) -> None:
    put(folder, train=CONVERTED.format("gloo") + "import os, sys\nos._exit(int(sys.argv[1]))\n")
    words = ["run", "train.py", "-n", "2", "--launcher", launcher, "--", "5"]
    done = ddpify(*words, cwd=folder, code=5, OMP_NUM_THREADS="1")
    said = lines(done.stderr)
    assert said[0].startswith("ddpify: ") and said[0].endswith(" train.py 5")  # what it runs
    assert said[-2].startswith("ddpify: rank ") and said[-1] == "  exit code 5"


def run(folder: Path, *words: str, **extra: str | None) -> str:
    """What `ddpify run train.py` prints, with the programs of the folder and no others."""
    given = {**environment(), "PATH": str(folder / "bin"), "PYTHONPATH": str(ROOT), **extra}
    for name in [name for name in given if name.startswith("SLURM_") and name not in extra] + ["PYTHONPATH"]:
        given.pop(name, None)
    command = [sys.executable, "-m", "ddpify", "run", "train.py", *words]
    if words[:1] == ("-m",):
        command = [*command[:4], *words]
    kept = {name: value for name, value in given.items() if value is not None}
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=60, check=True).stdout
