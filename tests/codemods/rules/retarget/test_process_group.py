"""DDP201: init_process_group, and the address of the group."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed, program_findings

_XLA = '"xla", init_method="xla://"'


@pytest.mark.parametrize(
    "lines",
    ["os.environ['OMP_NUM_THREADS'] = '1'", "print(os.environ['MASTER_ADDR'])", "x = dist.get_world_size()"],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist.init_process_group('gloo')", f"dist.init_process_group({_XLA})"),
        ("dist.init_process_group(backend='nccl', rank=0, world_size=1)", f"dist.init_process_group({_XLA})"),
        ("dist.init_process_group('nccl', 'env://', timeout=limit)", f"dist.init_process_group({_XLA}, timeout=limit)"),
        ("torch.distributed.init_process_group()", f"torch.distributed.init_process_group({_XLA})"),
        ("os.environ['MASTER_ADDR'] = 'localhost'\nx = 1", "x = 1"),
        ("os.environ.setdefault('MASTER_PORT', '29500')\nx = 1", "x = 1"),
        ("name = 'gloo'\ndist.init_process_group(name)", f"dist.init_process_group({_XLA})"),
    ],
)
def test_what_changes(before: str, after: str) -> None:
    check_transformed(before, after)


def test_a_name_of_the_backend_that_is_printed_too() -> None:
    lines = "name = 'gloo'\nprint(name)\n"
    check_transformed(f"{lines}dist.init_process_group(name)", f"{lines}dist.init_process_group({_XLA})")


def test_a_group_that_is_made_at_import() -> None:
    findings = program_findings("""\
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2).cuda()).mean().backward()
    optimizer.step()
    """)
    assert {finding.severity for finding in findings} == {"refused"}
    assert ("DDP201", 4) in [(finding.rule, finding.line) for finding in findings]
