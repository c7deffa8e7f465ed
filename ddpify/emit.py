"""What a cluster wants in place of a command: a Slurm script, a Kubernetes manifest, a list of hosts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from ddpify.files import BadInput
from ddpify.launchers import Job


def sbatch(job: Job, target: str, launcher: str) -> str:
    """A script for `sbatch`: one task for each process.

    GPUs are asked for by node: of `--gpus-per-task` each process sees one alone, as number 0.
    """
    count = max(1, job.processes)
    lines = ["#!/bin/bash", f"#SBATCH --job-name={_name(job)}"]
    lines += [f"#SBATCH --nodes={job.machines[1]}", f"#SBATCH --ntasks-per-node={count}"]
    lines += [f"#SBATCH --gpus-per-node={count}"] if target == "cuda" else []
    command = ["srun", "--kill-on-bad-exit=1", *job.extra, "python", *job.script]
    return "\n".join([*lines, "", shlex.join(command), ""])


def k8s(job: Job, target: str, launcher: str) -> str:
    """A PyTorchJob of Kubeflow's training operator, version 1.

    The operator says the rest to torchrun by variables: PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR,
    PET_MASTER_PORT.
    """
    count = max(1, job.processes)
    module, script = (["-m"], job.script[1:]) if job.script[0] == "-m" else ([], job.script)
    words = ["torchrun", *job.extra, *module, "--", *script]
    lines = ["apiVersion: kubeflow.org/v1", "kind: PyTorchJob", "metadata:", f"  name: {_name(job)}"]
    lines += ["spec:", f'  nprocPerNode: "{count}"', "  pytorchReplicaSpecs:"]
    machines = job.machines[1]
    for kind, replicas in (("Master", 1), ("Worker", machines - 1)):
        if replicas:
            lines += [f"    {kind}:", f"      replicas: {replicas}", "      restartPolicy: Never", "      template:"]
            lines += ["        spec:", "          containers:", "            - name: pytorch"]
            lines += ["              image: IMAGE  # yours, with torch, ddpify-runtime and the script"]
            lines += [f"              command: [{', '.join(map(_quoted, words))}]"]
            if target == "cuda":
                lines += [
                    "              resources:",
                    "                limits:",
                    f"                  nvidia.com/gpu: {count}",
                ]
    return "\n".join([*lines, ""])


def hostfile(job: Job, target: str, launcher: str) -> str:
    """The hosts as mpirun and horovodrun read them, with the number of processes of each.

    Raises:
        BadInput: no hosts were given.
    """
    if not job.hosts:
        raise BadInput("ddpify run", "--emit hostfile needs hosts", "--hosts node1:4,node2:4")
    form = "{}:{}\n" if launcher in ("mpich", "intelmpi") else "{} slots={}\n"
    return "".join(form.format(*host) for host in job.hosts)


FORMS: Mapping[str, Callable[[Job, str, str], str]] = {form.__name__: form for form in (sbatch, k8s, hostfile)}


def _name(job: Job) -> str:
    """After the script, in the letters that Kubernetes allows."""
    script = job.script[1] if job.script[0] == "-m" else Path(job.script[0]).stem
    return (
        "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in script.lower()).strip("-")
        or "train"
    )


def _quoted(word: str) -> str:
    """A word for YAML."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
