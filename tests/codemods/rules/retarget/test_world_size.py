"""DDP203 and DDP204: spawn, and the number of processes that it was given."""

from __future__ import annotations

from textwrap import dedent

import pytest

from .eager import program, program_findings

_SCRIPT = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train({parameters}):
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).cuda()).mean().backward()
    optimizer.step()


if __name__ == "__main__":
{start}
"""


def _converted(parameters: str, start: str) -> tuple[str, str]:
    """The new definition of `train` up to its second line, and what stands under the guard."""
    lines = "".join(f"    {line}\n" for line in dedent(start).splitlines())
    code = program(_SCRIPT.format(parameters=parameters, start=lines))
    definition = code.split("def train(")[1].split("    dist.init")[0]
    return definition, dedent(code.split('__main__":\n')[1]).strip()


@pytest.mark.parametrize(
    ("parameters", "start", "definition", "started"),
    [
        ("rank", "mp.spawn(train, nprocs=4)", "rank", "torch_xla.launch(train)"),
        ("rank, lr", "mp.spawn(train, args=(0.1,), nprocs=4)", "rank, lr", "torch_xla.launch(train, args=(0.1,))"),
        ("rank, size", "mp.spawn(train, (4,), 4)", "rank, size", "torch_xla.launch(train, args=(4,))"),
        ("rank, n, lr", "n = 2\nmp.spawn(train, (n, 1), n)", "rank, lr", "torch_xla.launch(train, args=(1,))"),
        ("rank, n", "n = 2\nmp.spawn(train, (n,), n)\nprint(n)", "rank", "n = 2\ntorch_xla.launch(train)\nprint(n)"),
        ("rank, a", "mp.spawn(train, args=(args,), nprocs=n)", "rank, a", "torch_xla.launch(train, args=(args,))"),
        ("rank", "mp.freeze_support()\nmp.spawn(train)", "rank", "mp.freeze_support()\ntorch_xla.launch(train)"),
    ],
)
def test_spawn(parameters: str, start: str, definition: str, started: str) -> None:
    assert _converted(parameters, start) == (f"{definition}):\n", started)


def test_a_constant_that_the_group_is_joined_with() -> None:
    script = _SCRIPT.replace('"nccl"', '"nccl", rank=rank, world_size=n')
    code = program(script.format(parameters="rank, n", start="    mp.spawn(train, (4,), 4)\n"))
    assert "def train(rank):" in code and "torch_xla.launch(train)\n" in code


@pytest.mark.parametrize(
    ("parameters", "start", "rule"),
    [
        ("rank", "mp.spawn(train, nprocs=4, join=False)", "DDP203"),
        ("rank", "mp.spawn(train, nprocs=4, start_method='fork')", "DDP203"),
        ("rank, n", "mp.spawn(train, args=list(x), nprocs=4)", "DDP203"),
        ("rank", "mp.spawn(train, **options)", "DDP203"),
        ("rank, size", "n = torch.cuda.device_count()\nmp.spawn(train, args=(n,), nprocs=n)\nprint(n)", "DDP204"),
        ("rank, size", "n = 2\nmp.spawn(train, args=(n,), nprocs=n)\ntrain(0, 1)", "DDP204"),
        ("rank", "x = torch.ones(1).cuda()\nmp.spawn(train, nprocs=4)", "DDP209"),
    ],
)
def test_refused(parameters: str, start: str, rule: str) -> None:
    lines = "".join(f"    {line}\n" for line in start.splitlines())
    findings = program_findings(_SCRIPT.format(parameters=parameters, start=lines))
    assert rule in {finding.rule for finding in findings if finding.severity == "refused"}
