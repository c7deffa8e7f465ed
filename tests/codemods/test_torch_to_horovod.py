"""Hand-written DistributedDataParallel in Horovod's words: what becomes of each line, and what has no form there."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

PATH = Path("train.py")
BEGIN = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

"""
GLOO = 'dist.init_process_group("gloo")\n'
WRAPS = "model = torch.nn.Linear(4, 1)\nmodel = DDP(model)\n"
MAKES = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
TRAINS = "model(torch.rand(8, 4)).mean().backward()\noptimizer.step()\n"


def moved(line: str = "", join: str = GLOO, wraps: str = WRAPS, makes: str = MAKES, trains: str = TRAINS) -> Result:
    return convert({PATH: f"{BEGIN}{join}{wraps}{makes}{line}\n{trains}"}, "horovod")[PATH]


def refused(result: Result) -> list[tuple[str, int]]:
    return [(each.rule, each.line) for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("r = dist.get_rank()", "r = hvd.rank()"),
        ("print(f'{dist.get_rank()} of {dist.get_world_size()}')", "print(f'{hvd.rank()} of {hvd.size()}')"),
        ("n = os.environ.get('WORLD_SIZE', '1')", "n = str(hvd.size())"),
        ("if 'RANK' in os.environ:\n    dist.barrier()", "if True:\n    hvd.barrier()"),
        ("x = torch.ones(1)\ndist.all_reduce(x)", "x = torch.ones(1)\nhvd.allreduce_(x, op=hvd.Sum)"),
        ("dist.all_reduce(x, dist.ReduceOp.AVG)", "hvd.allreduce_(x, op=hvd.Average)"),
        ("dist.broadcast(x, src=1)", "hvd.broadcast_(x, root_rank=1)"),
        ("torch.save(model.module.state_dict(), 'a')", "torch.save(model.state_dict(), 'a')"),
        ("dist.destroy_process_group()", "hvd.shutdown()"),
    ],
)
def test_words(before: str, after: str) -> None:
    result = moved(before)
    assert not refused(result), result.findings
    assert f"named_parameters=model.named_parameters())\n{after}\n" in result.code
    assert "dist" not in result.code.replace("hvd.DistributedOptimizer", "") and "DDP" not in result.code


@pytest.mark.parametrize(
    ("wraps", "after"),
    [
        ("model = DDP(torch.nn.Linear(4, 1), device_ids=[0])\n", "model = torch.nn.Linear(4, 1)\nhvd.broadcast"),
        ("net = torch.nn.Linear(4, 1)\nmodel = DDP(net)\n", "net = torch.nn.Linear(4, 1)\nmodel = net\nhvd.broadcast"),
        (WRAPS, "model = torch.nn.Linear(4, 1)\nhvd.broadcast_parameters(model.state_dict(), root_rank=0)\n"),
    ],
)
def test_forms_of_the_wrapper(wraps: str, after: str) -> None:
    assert f"hvd.init()\n{after}" in moved(wraps=wraps).code


@pytest.mark.parametrize(
    "join",
    [
        'dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=0, world_size=1)\n',
        'dist.init_process_group("gloo", rank=3, world_size=4)\n',
        'dist.init_process_group(**{"backend": "gloo"})\n',
        'rank = int(os.environ["RANK"])\n\ndef join():\n    dist.init_process_group("gloo")\n\njoin()\n',
    ],
)
def test_processes_that_horovodrun_does_not_start(join: str) -> None:
    assert {rule for rule, _ in refused(moved(join=join))} == {"DDP651"}


def test_ranks_are_asked_after_the_processes_are_joined() -> None:
    result = moved(join=f'rank = int(os.environ["RANK"])\n{GLOO}')
    assert "hvd.init()\nrank = hvd.rank()\nmodel = " in result.code
    result = moved(join=f'if "RANK" in os.environ:\n    rank = int(os.environ["RANK"])\n{GLOO}')
    assert "hvd.init()\n\nif True:\n    rank = hvd.rank()\nmodel = " in result.code


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("with model.no_sync():\n    pass", "DDP652"),
        ("model.register_comm_hook(None, hook)", "DDP652"),
        ("other = torch.optim.SGD(model.parameters(), lr=0.1)", "DDP652"),
        ("optimizer.add_param_group({'params': []})", "DDP652"),
        ("model.module = model.module", "DDP652"),
        ("model(torch.rand(8, 4)).mean().backward()", "DDP652"),
        ("optimizer.zero_grad(set_to_none=False)", "DDP652"),
        ("handle = dist.all_reduce(x, async_op=True)", "DDP653"),
        ("dist.all_gather(parts, x)", "DDP653"),
        ("group = dist.new_group([0])", "DDP653"),
        ("print(f'{dist.get_backend()}')", "DDP653"),
    ],
)
def test_what_has_no_form(line: str, rule: str) -> None:
    result = moved(line)
    assert {each for each, _ in refused(result)} == {rule} and "hvd" not in result.code


@pytest.mark.parametrize(
    ("wraps", "makes"),
    [
        ("model = DDP(torch.nn.Linear(4, 1), find_unused_parameters=True)\n", MAKES),
        ("model = DDP(torch.nn.Linear(4, 1), process_group=pairs)\n", MAKES),
        (
            "net = torch.nn.Linear(4, 1)\nother = torch.nn.Linear(4, 1)\nmodel = DDP(net)\n",
            MAKES.replace("model", "other"),
        ),
        (WRAPS + WRAPS.replace("model", "other"), MAKES),
        (WRAPS, MAKES.replace("SGD(model.parameters(), lr=0.1)", "LBFGS(model.parameters())")),
        (WRAPS, "optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]\noptimizer = optimizers[0]\n"),
    ],
)
def test_models_and_optimizers_that_horovod_trains_otherwise(wraps: str, makes: str) -> None:
    assert {rule for rule, _ in refused(moved(wraps=wraps, makes=makes))} == {"DDP652"}


def test_an_accumulated_step_is_refused() -> None:
    trains = (
        "for i in range(4):\n    model(torch.rand(8, 4)).mean().backward()\n    if i % 2:\n        optimizer.step()\n"
    )
    assert [rule for rule, _ in refused(moved(trains=trains))] == ["DDP652"]


def test_there_and_back() -> None:
    there = moved().code
    assert convert({PATH: there}, "horovod")[PATH].reason == "distributed with Horovod already"
    assert (
        "ddp_model = DistributedDataParallel(model, broadcast_buffers=False)"
        in convert({PATH: there}, "cpu")[PATH].code
    )


@pytest.mark.parametrize(
    ("arguments", "line", "told"),
    [("model", "model.eval()", True), ("model, broadcast_buffers=False", "model.eval()", False), ("model", "", False)],
)
def test_statistics_that_nobody_sends_any_more_are_told(arguments: str, line: str, told: bool) -> None:
    result = moved(line, wraps=f"model = torch.nn.BatchNorm1d(4)\nmodel = DDP({arguments})\n")
    assert [each.line for each in result.findings if "statistics of BatchNorm" in each.message] == [7] * told
    assert not refused(result)
