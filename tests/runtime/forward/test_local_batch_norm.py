"""sync_batch_norm=False: BatchNorm as in hand-written DistributedDataParallel; the default is that of one process."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel, get_rank, get_world_size
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from ..processes import run


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Tanh())
        self.head = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))  # type: ignore[no-any-return]


def batch(step: int, size: int = 24) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(size, 8, generator=generator), torch.arange(size) % 3


def state(model: nn.Module) -> Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.state_dict().values()])


def train(sync: bool | None, size: int = 24) -> list[Tensor]:
    """Parameters and buffers after each step, and the outputs of an evaluation after it."""
    torch.manual_seed(3)
    model = DistributedDataParallel(Net()) if sync is None else DistributedDataParallel(Net(), sync_batch_norm=sync)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for step in range(5):
        x, y = batch(step, size)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            by_parts = model.head(model.body(x))  # whole on every rank
            seen = [state(model), *(outputs.to("cpu").double().flatten() for outputs in (model(x), by_parts))]
        history.append(torch.cat(seen))
        model.train()
    return history


def train_by_hand() -> list[Tensor]:
    """The same with torch's DistributedDataParallel, on the same rows; parameters and rank 0's buffers."""
    torch.manual_seed(3)
    model = Net()
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for step in range(5):
        x, y = (rows[get_rank() :: get_world_size()] for rows in batch(step))
        optimizer.zero_grad()
        F.cross_entropy(wrapped(x), y).backward()
        optimizer.step()
        history.append(state(model))
    return history


def test_it_trains_what_is_written_by_hand() -> None:
    ours, theirs = run(2, train, False), run(2, train_by_hand)
    for mine, by_hand in zip(ours[0], theirs[0], strict=True):
        torch.testing.assert_close(mine[: len(by_hand)], by_hand, rtol=1e-5, atol=1e-6)


def test_every_rank_evaluates_the_same() -> None:
    first, *others = run(3, train, False)
    assert all(torch.equal(one, two) for other in others for one, two in zip(first, other, strict=True))


def test_the_default_is_the_statistics_of_the_batch() -> None:
    (alone,) = run(1, train, None)
    for sync, is_same in ((None, True), (True, True), (False, False)):
        last = run(2, train, sync)[0][-1]
        assert (float((last - alone[-1]).norm() / alone[-1].norm()) < 1e-5) is is_same


def collectives(sync: bool) -> Counter[str]:
    """What a rank sends in two training steps, once all is learnt."""
    torch.manual_seed(3)
    model = DistributedDataParallel(Net(), sync_batch_norm=sync)

    def steps(count: int) -> None:
        for step in range(count):
            F.cross_entropy(model(batch(step)[0]), batch(step)[1]).backward()

    steps(4)  # with the trials of calls 1 and 4
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        steps(2)
        dist.barrier()
    called = [event.name.partition(":") for event in seen.events()]
    return Counter(name for library, _, name in called if library == "gloo")


def test_its_steps_have_no_collective_of_a_batch_norm() -> None:
    gradients = {"all_to_all": 2, "barrier": 1}
    running = {"broadcast": 2}  # one for each forward: the running statistics
    assert run(2, collectives, False) == [gradients | running] * 2
    assert run(2, collectives, True) == [gradients | {"all_to_all": 2 + 8}] * 2  # two of each layer in each step


@pytest.mark.filterwarnings("ignore")
def test_a_batch_that_leaves_a_rank_one_sample_runs_whole() -> None:
    (alone,) = run(1, train, False, 3)
    torch.testing.assert_close(run(2, train, False, 3)[0][-1], alone[-1], rtol=1e-5, atol=1e-6)
