"""torch's collectives: the same numbers as torch's own, of lists and of tensors with gaps; alone the identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ddpify_runtime
import pytest
import torch
import torch.distributed as dist
from ddpify_runtime import get_rank, get_world_size
from torch import Tensor

from .processes import run


def mine(rank: int, shape: tuple[int, ...] = (2, 3), dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.arange(6).view(shape) * 10 + rank).to(dtype)


def kinds(rank: int) -> list[Tensor]:
    """Several sizes and dtypes, one with gaps, one transposed, one that requires a gradient."""
    gaps = torch.zeros(4, 4)[:, ::2]
    gaps += rank + torch.arange(8.0).view(4, 2)
    number = torch.tensor(float(rank))
    return [mine(rank), mine(rank, (6,), torch.int64), gaps, mine(rank).t(), number, mine(rank).requires_grad_()]


def reduced(given: list[list[Tensor]], op: Any) -> list[Tensor]:
    """What every rank has to get of what all give."""
    stacked = [torch.stack([each.detach() for each in parts]) for parts in zip(*given, strict=True)]
    found = []
    for each in stacked:
        if op == dist.ReduceOp.MAX:
            found.append(each.amax(0))
        elif op == dist.ReduceOp.AVG:
            found.append(each.sum(0) / len(each) if each.is_floating_point() else each.sum(0) // len(each))
        else:
            found.append(each.sum(0))
    return found


def same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def reduces() -> None:
    rank, size = get_rank(), get_world_size()
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
        expected = reduced([kinds(each) for each in range(size)], op)
        together, apart = kinds(rank), kinds(rank)
        assert ddpify_runtime.all_reduce(together, op) is None
        same([each.detach() for each in together], expected)
        for tensor, value in zip(apart, expected, strict=True):
            ddpify_runtime.all_reduce(tensor, op=op, async_op=True).wait()
            same(tensor.detach(), value)
    for src in range(size):
        together, apart = kinds(rank), kinds(rank)
        ddpify_runtime.broadcast(together, src)
        for tensor, expected_value, alone in zip(together, kinds(src), apart, strict=True):
            same(tensor.detach(), expected_value.detach())
            ddpify_runtime.broadcast(alone, src=src, async_op=True).wait()  # type: ignore[attr-defined]
            same(alone.detach(), expected_value.detach())
    output = torch.zeros(3, 2).t()
    parts = [mine(rank) * (place + 1) for place in range(size)]
    ddpify_runtime.reduce_scatter(output, parts)
    same(output, sum((mine(each) for each in range(size)), torch.zeros(2, 3)) * (rank + 1))


def gathers() -> None:
    rank, size = get_rank(), get_world_size()
    given = kinds(rank)
    lists = [[torch.zeros_like(each.detach()) for each in given] for _ in range(size)]
    ddpify_runtime.all_gather(lists, given)
    for each, found in enumerate(lists):
        same(found, [value.detach() for value in kinds(each)])
    single = [torch.zeros(2, 3) for _ in range(size)]
    ddpify_runtime.all_gather(tensor_list=single, tensor=mine(rank))
    same(single, [mine(each) for each in range(size)])
    for dst in range(size):
        place = [torch.zeros(3, 2).t() for _ in range(size)] if rank == dst else None
        ddpify_runtime.gather(mine(rank), place, dst)
        if place is not None:
            same(place, [mine(each) for each in range(size)])
    flags = [torch.zeros(2, dtype=torch.bool) for _ in range(size)]
    ddpify_runtime.all_gather(flags, torch.tensor([True, rank == 0]))
    assert [each.tolist() for each in flags] == [[True, each == 0] for each in range(size)]


def objects() -> None:
    rank, size = get_rank(), get_world_size()
    everything: list[Any] = [None] * size
    ddpify_runtime.all_gather_object(everything, {"rank": rank, "name": "x" * rank})
    assert everything == [{"rank": each, "name": "x" * each} for each in range(size)]
    for dst in range(size):
        found: list[Any] | None = [None] * size if rank == dst else None
        ddpify_runtime.gather_object("x" * rank, found, dst)
        assert found == (["x" * each for each in range(size)] if rank == dst else None)
        sent = [dst, {"a": "x" * dst}] if rank == dst else [None, None]
        ddpify_runtime.broadcast_object_list(sent, src=dst)
        assert sent == [dst, {"a": "x" * dst}]
    assert ddpify_runtime.broadcast(f"rank {rank}") == "rank 0"  # the value of rank 0, as ever


@pytest.mark.parametrize("what", [reduces, gathers, objects])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_collectives(what: Any, world_size: int) -> None:
    run(world_size, what)


def in_groups() -> list[Any]:
    """Ranks 0 and 2 among themselves; rank 1 has no part in it."""
    group = dist.new_group([0, 2])
    rank = get_rank()
    tensor, found, output = torch.tensor([float(rank + 1)]), [torch.zeros(1) for _ in range(2)], torch.zeros(1)
    ddpify_runtime.all_reduce(tensor, group=group)
    if rank != 1:
        ddpify_runtime.all_gather(found, torch.tensor([float(rank)]), group)
        ddpify_runtime.reduce_scatter(output, [torch.tensor([1.0]), torch.tensor([5.0])], group=group)
    names: list[Any] = [None, None]
    ddpify_runtime.all_gather_object(names, rank, group)
    sent = [rank]
    ddpify_runtime.broadcast_object_list(sent, 2, group)
    return [tensor.item(), [each.item() for each in found], output.item(), names, sent]


def test_groups() -> None:
    assert run(3, in_groups) == [
        [4.0, [0.0, 2.0], 2.0, [0, 2], [2]],
        [2.0, [0.0, 0.0], 0.0, [None, None], [1]],
        [4.0, [0.0, 2.0], 10.0, [0, 2], [2]],
    ]


def uneven(name: str) -> str:
    rank, size = get_rank(), get_world_size()
    tensor = torch.ones(2 + rank) if name != "dtype" else torch.ones(2, dtype=(torch.float32, torch.int32)[rank])
    lists = [torch.zeros_like(tensor) for _ in range(size)]
    calls: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: ddpify_runtime.all_reduce(tensor),
        "dtype": lambda: ddpify_runtime.all_reduce(tensor),
        "broadcast": lambda: ddpify_runtime.broadcast(tensor, 0),
        "all_gather": lambda: ddpify_runtime.all_gather(lists, tensor),
        "gather": lambda: ddpify_runtime.gather(tensor, lists if rank == 0 else None),
        "reduce_scatter": lambda: ddpify_runtime.reduce_scatter(tensor, lists),
    }
    with pytest.raises(ValueError, match="the ranks give tensors of other shapes or dtypes: rank 0") as raised:
        calls[name]()
    return str(raised.value)


@pytest.mark.parametrize("name", ["all_reduce", "dtype", "broadcast", "all_gather", "gather", "reduce_scatter"])
def test_uneven_sizes_are_an_error_on_all_ranks(name: str) -> None:
    first, second = run(2, uneven, name)
    assert first == second


def short_lists() -> None:
    with pytest.raises(ValueError, match="the list must have 1 entries"):
        ddpify_runtime.all_gather([], torch.ones(2))
    with pytest.raises(ValueError, match="the list must have 1 entries"):
        ddpify_runtime.gather(torch.ones(2))
    with pytest.raises(ValueError, match="the list must have 1 entries"):
        ddpify_runtime.reduce_scatter(torch.ones(2), [torch.ones(3)])
    with pytest.raises(ValueError, match="the list must have 1 entries"):
        ddpify_runtime.all_gather_object([], 1)


def test_lists_of_another_length_are_an_error_alone_too() -> None:
    run(1, short_lists)


def says() -> None:
    ddpify_runtime.print_by_rank("rank", get_rank(), sep="-")


@pytest.mark.parametrize("world_size", [1, 3])
def test_prints_come_in_the_order_of_the_ranks(world_size: int, capfd: pytest.CaptureFixture[str]) -> None:
    run(world_size, says)
    assert capfd.readouterr().out == "".join(f"rank-{rank}\n" for rank in range(world_size))


def of_the_whole_batch() -> None:
    net = ddpify_runtime.DistributedDataParallel(torch.nn.Linear(3, 1))
    for _ in range(2):
        loss = net(torch.ones(4, 3)).square().mean()
    with pytest.raises(ValueError, match="the same on every rank already"):
        ddpify_runtime.all_reduce(loss)
    with pytest.raises(RuntimeError, match="called by all ranks"):
        ddpify_runtime.rank_zero_only(lambda: ddpify_runtime.all_reduce(torch.ones(1)))()


def test_what_is_of_all_ranks_already_is_not_added() -> None:
    run(2, of_the_whole_batch)
