"""DDP205: ranks and the world size."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed, program_findings, refusals


@pytest.mark.parametrize(
    "lines",
    ["x = dist.get_rank()", "os.environ['HOME']", "x = int(os.environ.get('EPOCHS', 3))", "x = {'RANK': 1}['RANK']"],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = int(os.environ['RANK'])", "x = xr.global_ordinal()"),
        ("x = int(os.environ['LOCAL_RANK'])", "x = xr.local_ordinal()"),
        ("x = int(os.environ.get('WORLD_SIZE', 1))", "x = xr.world_size()"),
        ("x = int(os.getenv('LOCAL_WORLD_SIZE', '1'))", "x = xr.local_device_count()"),
        ("x = os.environ['RANK']", "x = str(xr.global_ordinal())"),
        ("x = 'RANK' in os.environ", "x = True"),
        (
            "s = torch.utils.data.DistributedSampler(d, num_replicas=2, rank=rank)",
            "s = torch.utils.data.DistributedSampler(d, num_replicas=xr.world_size(), rank=rank)",
        ),
        ("os.environ['RANK'] = '0'\nx = 1", "x = 1"),
        ("x = 8 // torch.cuda.device_count()", "x = 8 // xr.local_device_count()"),
        ("print(f'{torch.cuda.device_count()} GPUs')", "print(f'{torch.cuda.device_count()} GPUs')"),
        ("x = torch.device(f\"cuda:{os.environ['LOCAL_RANK']}\")", "x = torch_xla.device()"),
        (
            "x = 1\ndist.init_process_group('nccl', rank=args.rank, world_size=args.n)",
            "x = 1\nargs.rank = xr.global_ordinal()\nargs.n = xr.world_size()\n"
            'dist.init_process_group("xla", init_method="xla://")',
        ),
        (
            "place = args.node * 8 + args.gpu\ndist.init_process_group('nccl', rank=place, world_size=8)",
            'place = xr.global_ordinal()\ndist.init_process_group("xla", init_method="xla://")',
        ),
    ],
)
def test_what_changes(before: str, after: str) -> None:
    check_transformed(before, after)


def test_a_number_of_gpus_that_only_chose_one() -> None:
    check_transformed(
        "gpu_id = rank % torch.cuda.device_count()\nm = DDP(nn.Linear(4, 1).to(gpu_id), device_ids=[gpu_id])",
        "m = DDP(nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)",
    )


def test_a_world_size_that_callers_hand_over() -> None:
    above = "def setup(size):\n    dist.init_process_group('nccl', world_size=size)\n"
    check_transformed(
        "x = 1\nsetup(args.world_size)\nn = args.gpus * 2\nsetup(n)",
        "x = 1\nargs.world_size = xr.world_size()\nsetup(args.world_size)\nn = xr.world_size()\nsetup(n)",
        above,
    )


def test_a_rank_in_an_f_string() -> None:
    assert refusals("print(f\"rank {os.environ['RANK']}\")") == ["DDP205"]


def test_a_rank_that_is_read_at_import() -> None:
    [finding] = program_findings("""\
    import os
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])


    def main():
        dist.init_process_group("nccl")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(4, 2).cuda()).mean().backward()
        optimizer.step()


    if __name__ == "__main__":
        main()
    """)
    assert (finding.rule, finding.severity, finding.line) == ("DDP205", "refused", 5)
