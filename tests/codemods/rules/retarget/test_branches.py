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


_SAVE = """\
def save(state):
    if dist.get_rank() == 0:
        xs.append(state.item())
"""


def test_a_branch_in_a_function_that_is_called_after_collectives() -> None:
    line = "dist.all_reduce(x)\nsave(x)"
    check_transformed(line, line, _SAVE, _SAVE.replace("    if", f"    {_SYNC}    if"))


@pytest.mark.parametrize(
    "line",
    [
        "model(x).sum().backward()\noptimizer.step()\ntorch_xla.sync()\nsave(x)",
        f"dist.all_reduce(x)\n{_SYNC}if rank == 0:\n    save(x)",  # others do not come there
    ],
)
def test_a_function_that_is_called_where_nothing_waits(line: str) -> None:
    check_transformed(line.replace(_SYNC, ""), line, _SAVE, _SAVE)


def test_a_branch_in_a_method() -> None:
    above = "class Saver:\n    def save(self, x):\n        {}if dist.get_rank() == 0:\n            print(x)\n"
    line = "dist.all_reduce(x)\nSaver().save(x)"
    check_transformed(line, line, above.format(""), above.format("torch_xla.sync()\n        "))


def test_a_branch_after_the_collectives_of_the_round_before() -> None:
    line = "for epoch in range(2):\n{}    if rank == 0:\n        print(x)\n    dist.all_reduce(x)"
    before, after = line.format(""), line.format("    torch_xla.sync()\n")
    check_transformed(f"{_STEP}{before}", f"{_STEP}{_SYNC}{after}")


def test_another_condition_on_the_rank_of_a_chain() -> None:
    line = "if late:\n    pass\nelif rank == 0:\n    print(x)"
    check_transformed(f"dist.all_reduce(x)\n{line}", f"dist.all_reduce(x)\n{_SYNC}{line}", "late = False")


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
