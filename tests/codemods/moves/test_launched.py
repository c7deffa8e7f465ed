"""DDP228 and DDP229: hand-written scripts that start their own processes are made for a launcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

from tests.e2e.test_by_hand import SCRIPTS

PATH = Path("train.py")
SCRIPT = """\
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size, steps):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4)).mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(train, args=(world_size, 10), nprocs=world_size)
"""
COUNT = "world_size = torch.cuda.device_count()"
SPAWN = "mp.spawn(train, args=(world_size, 10), nprocs=world_size)"
JOIN = 'dist.init_process_group("gloo", rank=rank, world_size=world_size)'


def launched(*changes: str, target: str = "cpu") -> Result:
    """What becomes of the script with changes, old text and new in turn, under a target's launcher."""
    text = SCRIPT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    result = convert({PATH: text}, target, entry="torchrun")[PATH]
    if any(each.severity == "refused" for each in result.findings):
        assert result.code == text
    else:
        assert convert({PATH: result.code}, target, entry="torchrun")[PATH].code == result.code
    return result


def refused(*changes: str) -> tuple[str, str]:
    result = launched(*changes)
    found = next(each for each in result.findings if each.severity == "refused")
    return found.rule, found.message


def test_the_function_is_called_with_the_launchers_rank() -> None:
    code = launched().code
    after = 'world_size = int(os.environ["WORLD_SIZE"])\n    train(int(os.environ["RANK"]), world_size, 10)\n'
    assert code.endswith(after) and "mp" not in code.replace("import", "")
    assert "MASTER" not in code and JOIN in code


def test_without_the_option_the_script_goes_on_to_start_them() -> None:
    assert "mp.spawn(" in convert({PATH: SCRIPT}, "cpu")[PATH].code


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        (
            (COUNT, "pass", SPAWN, "mp.spawn(train, args=(2, 10), nprocs=2)"),
            'train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 10)',
        ),
        ((COUNT, "world_size = 4"), 'world_size = int(os.environ["WORLD_SIZE"])'),
        ((COUNT, "world_size = min(4, torch.cuda.device_count())"), 'world_size = int(os.environ["WORLD_SIZE"])'),
        ((SPAWN, SPAWN + '\n    print("done")'), 'train(int(os.environ["RANK"]), world_size, 10)\n    print("done")'),
        (("rank=rank,", 'init_method="tcp://localhost:29500", rank=rank,'), f"    {JOIN}\n"),
    ],
)
def test_forms(changes: tuple[str, ...], after: str) -> None:
    result = launched(*changes)
    assert after in result.code, result.findings


@pytest.mark.parametrize(
    ("changes", "rule", "message"),
    [
        ((SPAWN, SPAWN.replace("nprocs", "join=False, nprocs")), "DDP228", "no form"),
        ((COUNT, "world_size = int(sys.argv[1])"), "DDP228", "not known before the run"),
        ((SPAWN, SPAWN + '\n    print(torch.load("model.pt"))'), "DDP228", "once"),
        ((COUNT, COUNT + '\n    os.mkdir("out")'), "DDP228", "once"),
        (("rank=rank", "rank=4 + rank"), "DDP229", "ranks of this group"),
        (("world_size=world_size)\n", "world_size=8)\n"), "DDP229", "ranks of this group"),
        (("rank=rank, ", ""), "DDP229", "ranks of this group"),
    ],
)
def test_what_a_launcher_cannot_start(changes: tuple[str, ...], rule: str, message: str) -> None:
    found = refused(*changes)
    assert found[0] == rule and message in found[1]


def test_mpirun_starts_the_tutorials_script() -> None:
    text = (SCRIPTS / "spawned.cuda.py").read_text()
    result = convert({PATH: text}, "mpi")[PATH]
    assert 'demo_fn(int(os.environ["RANK"]), world_size)' in result.code and "PMI_RANK" in result.code
    assert convert({PATH: result.code}, "mpi")[PATH].code == result.code


def test_horovodrun_starts_the_tutorials_script() -> None:
    text = (SCRIPTS / "spawned.cuda.py").read_text()
    result = convert({PATH: text}, "horovod")[PATH]
    assert "    hvd.init()\n    n_gpus = hvd.size()\n" in result.code
    assert "demo_fn(hvd.rank(), world_size)" in result.code and "torch.distributed" not in result.code
    assert convert({PATH: result.code}, "horovod")[PATH].reason == "distributed with Horovod already"
