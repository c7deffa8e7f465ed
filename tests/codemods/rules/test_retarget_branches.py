"""DDP207: barriers, and branches that only some ranks take."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed

_STEP = "model(x).sum().backward()\noptimizer.step()\n"
_SYNC = "torch_xla.sync()\n"


@pytest.mark.parametrize(
    "lines",
    [
        "if rank == 0:\n    print('start')",
        "if rank == 0:\n    print(rank, epoch)",
        "if step == 0:\n    print(model.module.weight)",
        "if rank == 0:\n    os.makedirs('runs', exist_ok=True)",
        "maintain = 1 > 0\nif maintain:\n    print(model.module.weight)",
    ],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "if rank == 0:\n    print(model.module.weight)",
        "if dist.get_rank() == 0:\n    print(loss.item())",
        "if rank == 0 and step % 10 == 0:\n    show(loss.item())",
        "if rank != 0:\n    return",
        "if is_main():\n    print(loss)",
    ],
)
def test_a_branch_after_collectives(lines: str) -> None:
    check_transformed(f"dist.all_reduce(x)\n{lines}", f"dist.all_reduce(x)\n{_SYNC}{lines}", _MAIN)


def test_a_branch_by_a_name_that_the_rank_decides() -> None:
    lines = "is_chief = dist.get_rank() == 0\ndist.all_reduce(x)\n{}if is_chief:\n    print(loss)"
    check_transformed(lines.format(""), lines.format(_SYNC))


_MAIN = "def is_main():\n    return dist.get_rank() == 0\n"


def test_a_branch_after_a_step() -> None:
    line = "if rank == 0:\n    print(loss.item())"
    check_transformed(f"{_STEP}{line}", f"{_STEP}{_SYNC}{line}")


def test_a_branch_after_a_function_that_trains() -> None:
    above = "def train(model, x):\n    model(x).sum().backward()\n"
    line = "if rank == 0:\n    print(loss.item())"
    check_transformed(f"train(model, x)\n{line}", f"train(model, x)\n{_SYNC}{line}", above)


@pytest.mark.parametrize(
    "call", ["dist.barrier()", "torch.distributed.barrier(device_ids=[0])", "dist.monitored_barrier()"]
)
def test_barriers(call: str) -> None:
    check_transformed(call, 'xm.rendezvous("barrier")')
