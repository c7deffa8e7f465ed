"""Each rank keeps the state of some parameters, and trains, saves and loads what one process does."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel, ZeroRedundancyOptimizer, get_rank, rank_zero_only
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import OneCycleLR, StepLR
from torch.optim.optimizer import register_optimizer_step_post_hook

from .processes import run

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch.distributed.optim  # takes a second: once here instead of in every fork

STEPS = 6
ALL: dict[str, tuple[type[Optimizer], dict[str, Any]]] = {
    "SGD": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    "Adam": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.05}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.01, "centered": True}),
    "Adadelta": (torch.optim.Adadelta, {}),
    "Adamax": (torch.optim.Adamax, {}),
    "NAdam": (torch.optim.NAdam, {}),
    "RAdam": (torch.optim.RAdam, {}),
    "ASGD": (torch.optim.ASGD, {}),
    "Rprop": (torch.optim.Rprop, {}),
    "Adafactor": (torch.optim.Adafactor, {}),
}


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)).double()


def batches() -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    for size in (12, 12, 5, 12, 12, 5)[:STEPS]:
        yield torch.rand(size, 8, generator=generator).double(), torch.randint(3, (size,), generator=generator)


def steps(net: nn.Module, optimizer: Optimizer, given: Iterable[tuple[Tensor, Tensor]]) -> list[list[Tensor]]:
    trained = []
    for x, y in given:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        trained.append([parameter.detach().clone() for parameter in net.parameters()])
    return trained


def whole(params: Any, optimizer_class: Any, **rest: Any) -> Any:
    return optimizer_class(params, **rest)


def trains(name: str, divided: bool = True) -> Any:
    net = DistributedDataParallel(model())
    kind, arguments = ALL[name]
    make = (
        ZeroRedundancyOptimizer if divided else lambda params, optimizer_class, **rest: optimizer_class(params, **rest)
    )
    optimizer = make(net.parameters(), optimizer_class=kind, **arguments)
    trained, state = steps(net, optimizer, batches()), optimizer.state_dict()["state"]
    return trained, state if get_rank() == 0 else None


def bits(value: Any) -> str:
    """All digits of nested tensors and numbers."""
    if isinstance(value, dict):
        return repr({key: bits(each) for key, each in value.items()})
    if isinstance(value, (list, tuple)):
        return repr([bits(each) for each in value])
    return repr(value.tolist() if isinstance(value, Tensor) else value)


@pytest.mark.parametrize("name", ALL)
def test_bit_for_bit_as_without(name: str) -> None:
    """Whoever keeps the state of a parameter makes the step that all ranks would have made."""
    apart, together = run(3, trains, name), run(3, trains, name, False)
    assert [bits(each[0]) for each in apart] == [bits(each[0]) for each in together]
    assert bits(apart[0][1]) == bits(together[0][1])


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_every_step_is_that_of_one_process(name: str) -> None:
    [(alone, state)] = run(1, trains, name, False)
    for world_size in (2, 3):
        divided = run(world_size, trains, name)
        for trained, _ in divided:
            for step, expected in zip(trained, alone, strict=True):
                torch.testing.assert_close(step, expected, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(divided[0][1], state, rtol=1e-9, atol=1e-12)


def kept() -> tuple[int, int]:
    net = DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 16).double(), *(nn.Linear(16, 16).double() for _ in range(12)))
    )
    optimizer: Any = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam)
    steps(net, optimizer, batches())
    inner = getattr(optimizer, "optim", optimizer)
    states = [value for each in inner.state.values() for value in each.values() if value.dim()]
    return sum(value.numel() for value in states), sum(parameter.numel() for parameter in net.parameters())


def test_a_rank_keeps_its_part_of_the_state() -> None:
    [(alone, parameters)] = run(1, kept)
    assert alone == 2 * parameters
    for world_size in (2, 3):
        parts = [part for part, _ in run(world_size, kept)]
        assert sum(parts) == alone
        assert max(parts) < 1.3 * alone / world_size


def alone() -> None:
    optimizer = ZeroRedundancyOptimizer(model().parameters(), optimizer_class=torch.optim.Adam, lr=0.1)
    assert type(optimizer) is torch.optim.Adam and optimizer.defaults["lr"] == 0.1


def test_alone_it_is_the_optimizer() -> None:
    run(1, alone)


def resumed(saves_divided: bool, loads_divided: bool, folder: str) -> list[list[Tensor]]:
    """Train, save as a script does, load in a new optimizer, train on."""
    given = [*batches()]

    def make(divided: bool, net: nn.Module) -> Optimizer:
        groups = [{"params": net[0].parameters(), "lr": 0.02}, {"params": (p for p in net[2:].parameters())}]  # type: ignore[index]
        if divided:
            return ZeroRedundancyOptimizer(groups, optimizer_class=torch.optim.Adam, lr=0.01)
        return torch.optim.Adam(groups, lr=0.01)

    net = DistributedDataParallel(model())
    optimizer = make(saves_divided, net)
    scheduler = StepLR(optimizer, 2, 0.5)
    steps(net, optimizer, given[:3])
    scheduler.step()
    path = f"{folder}/{saves_divided}{loads_divided}.pt"
    saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    rank_zero_only(torch.save)(saved, path)
    checkpoint = torch.load(path)
    before = copy.deepcopy(checkpoint["optimizer"])
    again = DistributedDataParallel(model())
    again.load_state_dict(checkpoint["net"])
    optimizer = make(loads_divided, again)
    scheduler = StepLR(optimizer, 2, 0.5)
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert bits(before) == bits(checkpoint["optimizer"]), "what was loaded is changed"
    scheduler.load_state_dict(checkpoint["scheduler"])
    scheduler.step()
    return steps(again, optimizer, given[3:])


@pytest.mark.parametrize(("saves", "loads"), [(True, True), (True, False), (False, True)])
def test_checkpoints_load_in_either_version(saves: bool, loads: bool, tmp_path: Any) -> None:
    expected = run(2, resumed, False, False, str(tmp_path))
    assert [bits(each) for each in run(2, resumed, saves, loads, str(tmp_path))] == [bits(each) for each in expected]


def other_ways(divided: bool) -> list[Any]:
    """A group that is added, a scheduler that asks for defaults, hooks, a restored state, what is printed."""
    net = DistributedDataParallel(model())
    make = (
        ZeroRedundancyOptimizer if divided else lambda params, optimizer_class, **rest: optimizer_class(params, **rest)
    )
    optimizer = make(net[0].parameters(), optimizer_class=torch.optim.Adam, lr=0.01)  # type: ignore[index]
    hooked: list[Any] = []
    register_optimizer_step_post_hook(lambda *given: hooked.append(type(given[0]).__name__))
    given = [*batches()]
    steps(net, optimizer, given[:1])
    optimizer.add_param_group({"params": net[2:].parameters(), "weight_decay": 0.1})  # type: ignore[index]
    scheduler = OneCycleLR(optimizer, 0.1, total_steps=9)
    best = copy.deepcopy(optimizer.state_dict())
    trained = steps(net, optimizer, given[1:3])
    optimizer.load_state_dict(best)
    scheduler.step()
    trained += steps(net, optimizer, given[3:])
    assert isinstance(optimizer, torch.optim.Adam)
    return [trained, repr(optimizer), hooked, optimizer.param_groups[1]["betas"]]


def test_other_ways_to_use_it() -> None:
    assert [bits(each) for each in run(2, other_ways, True)] == [bits(each) for each in run(2, other_ways, False)]


class Mine(torch.optim.SGD):
    """One that may look at all parameters."""


def refused() -> list[str]:
    optimizer = ZeroRedundancyOptimizer(model().parameters(), optimizer_class=torch.optim.Adam)

    def reset() -> None:
        optimizer.state = {}  # type: ignore[assignment]

    state = optimizer.state_dict()["state"]
    calls: list[Callable[[], Any]] = [
        lambda: ZeroRedundancyOptimizer(model().parameters(), optimizer_class=torch.optim.LBFGS),
        lambda: ZeroRedundancyOptimizer(model().parameters(), optimizer_class=Mine),
        lambda: optimizer.state[next(iter(model().parameters()))],
        reset,
        lambda: torch.save(optimizer, io.BytesIO()),
        lambda: optimizer.load_state_dict(torch.optim.Adam(nn.Linear(2, 2).parameters()).state_dict()),
        *([lambda: len(state), lambda: [*state.values()]] if get_rank() else []),
        lambda: rank_zero_only(lambda: optimizer.state_dict())(),
    ]
    said = []
    for call in calls:
        try:
            call()
        except (TypeError, RuntimeError, ValueError) as error:
            said.append(str(error))
        else:
            said.append("nothing")
    return said


def test_refused() -> None:
    first, second = run(2, refused)
    for said, expected in zip(
        second,
        [
            "the state of LBFGS cannot be divided",
            "the state of Mine cannot be divided",
            "optimizer.state cannot be read",
            "optimizer.state cannot be read",
            "cannot be copied or saved",
            "other parameter groups",
            "only rank 0 has the whole",
            "only rank 0 has the whole",
            "one calls it alone",
        ],
        strict=True,
    ):
        assert expected in said
    assert len(first) == len(second) - 2
