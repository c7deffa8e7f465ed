"""What a cluster wants in place of a command."""

from __future__ import annotations

import pytest
import yaml

from ddpify.emit import hostfile, k8s, sbatch
from ddpify.files import BadInput
from ddpify.launchers import Job

JOB = Job(("train.py", "--lr", "0.1"), processes=4, machines=(2, 2), hosts=(("one", 4), ("two", 4)))


def test_a_slurm_script_has_a_task_for_each_process() -> None:
    script = sbatch(JOB, "cuda", "srun")
    assert script.startswith("#!")
    assert "#SBATCH --nodes=2" in script and "#SBATCH --ntasks-per-node=4" in script
    assert "#SBATCH --gpus-per-node=4" in script and "train.py --lr 0.1" in script
    assert "gpus" not in sbatch(JOB, "cpu", "srun")


def test_a_manifest_is_yaml_for_all_machines() -> None:
    manifest = yaml.safe_load(k8s(JOB, "cuda", "torchrun"))
    assert manifest["kind"] == "PyTorchJob"
    replicas = manifest["spec"]["pytorchReplicaSpecs"]
    assert sum(spec["replicas"] for spec in replicas.values()) == 2


def test_hosts_with_their_processes() -> None:
    assert hostfile(JOB, "cpu", "openmpi").split("\n")[:2] == ["one slots=4", "two slots=4"]
    with pytest.raises(BadInput):
        hostfile(Job(("train.py",)), "cpu", "openmpi")
