"""Hand-written DDP in the words of Ignite: what becomes of each line, and what has no form there."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

PATH = Path("train.py")
HEAD = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
"""
TRAINS = """\
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4)).mean().backward()
optimizer.step()
"""
GLOO = 'dist.init_process_group("gloo")'


def moved(line: str, joined: str = GLOO) -> Result:
    return convert({PATH: f"{HEAD}{joined}\n{TRAINS}{line}\n"}, "ignite")[PATH]


def refused(result: Result) -> list[tuple[str, int]]:
    return [(each.rule, each.line) for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist.init_process_group()", 'idist.initialize("nccl" if torch.cuda.is_available() else "gloo")'),
        ("dist.init_process_group(backend=os.environ['B'])", "idist.initialize(os.environ['B'])"),
        ('dist.init_process_group("gloo", init_method="env://")', 'idist.initialize("gloo")'),
        ('dist.init_process_group("gloo", timeout=None)', 'idist.initialize("gloo", timeout=None)'),
        (
            'dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))',
            'idist.initialize("gloo")',
        ),
        ('rank = int(os.environ["RANK"])\ndist.init_process_group("gloo", rank=rank)', 'idist.initialize("gloo")'),
    ],
)
def test_joined(before: str, after: str) -> None:
    result = moved("", before)
    assert f"\n{after}\n" in result.code and "init_process_group" not in result.code, result.findings


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist.destroy_process_group()", "idist.finalize()"),
        ("rank = dist.get_rank()", "rank = idist.get_rank()"),
        ("rank = dist.get_rank(None)", "rank = dist.get_rank(None)"),
        ("dist.barrier()", "idist.barrier()"),
        ("dist.all_reduce(torch.ones(1))", "dist.all_reduce(torch.ones(1))"),
        ("net = DDP(model, device_ids=[0], static_graph=True)", "net = idist.auto_model(model, static_graph=True)"),
        ("state = model.module.state_dict()", "state = getattr(model, 'module', model).state_dict()"),
    ],
)
def test_words(before: str, after: str) -> None:
    result = moved(before)
    assert result.code.endswith(f"{after}\n"), result.findings
    assert "import torch.distributed as dist" in result.code or "dist." not in result.code.replace("idist.", "")


@pytest.mark.parametrize(
    "joined",
    [
        'dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=0, world_size=1)',
        'dist.init_process_group("gloo", rank=0, world_size=1)',
        'dist.init_process_group("ucc")',
        'dist.init_process_group(**{"backend": "gloo"})',
        'dist.init_process_group("gloo", store=None)',
    ],
)
def test_what_ignite_cannot_join(joined: str) -> None:
    result = moved("", joined)
    assert refused(result) == [("DDP631", 6)] and "idist" not in result.code


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("other = DDP(model, process_group=None)", "DDP633"),
        ("other = DDP(**{'module': model})", "DDP633"),
        ("model.module = model.module", "DDP633"),
    ],
)
def test_what_ignite_cannot_wrap(line: str, rule: str) -> None:
    assert refused(moved(line)) == [(rule, 11)]


def spawned(call: str, backend: str = '"gloo"') -> Result:
    body = "".join(f"    {line}\n" for line in TRAINS.splitlines())
    join = f"    dist.init_process_group({backend}, rank=rank, world_size=n)\n"
    source = f"{HEAD}\ndef train(rank, n):\n{join}{body}\nif __name__ == '__main__':\n    {call}\n"
    return convert({PATH: source}, "ignite")[PATH]


def test_spawned() -> None:
    result = spawned("mp.spawn(train, (2,), 2)")
    assert '    idist.spawn("gloo", train, args=(2,), nproc_per_node=2)\n' in result.code
    assert "mp" not in result.code.replace("import", "") and "process_group" not in result.code


@pytest.mark.parametrize(
    ("call", "backend", "line"),
    [
        ("mp.spawn(train, (2,), 2, join=False)", '"gloo"', 15),
        ("mp.spawn(train, (2,), 2, start_method='fork')", '"gloo"', 15),
        ("mp.spawn(train, (2,), 2)", "chosen(n)", 15),
    ],
)
def test_what_ignite_cannot_spawn(call: str, backend: str, line: int) -> None:
    assert refused(spawned(call, backend)) == [("DDP631", line)]


def test_moved_once_it_stays() -> None:
    once = moved("").code
    assert convert({PATH: once}, "ignite")[PATH].reason == "distributed with Ignite already"
