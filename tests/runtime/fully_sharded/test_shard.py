"""A sharded module trains what one process trains, and each rank keeps its part."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import fully_shard
from torch import Tensor, nn

from tests.runtime import processes


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x).tanh()
        return self.head(self.norm(x))


class WithLoss(Net):
    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        output = super().forward(x)
        return output if y is None else (output, F.cross_entropy(output, y))


class Viewed(Net):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x).view(-1, 3)


class Coupled(Viewed):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x - x.sort(0).values)


class SomeRowsOnly(Net):
    """Two layers that are computed only where a rank has rows for them."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x: Tensor) -> Any:
        output = super().forward(x)
        for number, expert in enumerate(self.experts):
            rows = ((x[:, 0] > 0.5) == bool(number)).nonzero()[:, 0]
            if len(rows):
                output = output.index_add(0, rows, expert(output[rows]))
        return output


def trained(kind: type[Net], in_groups: bool, optimizer: str) -> tuple[list[Tensor], list[float], list[int], Any]:
    """The parameters in the end, the losses and accuracies, the numbers that are kept, and the module's face."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = kind()
    face = type(model), [*vars(model)], [*vars(model.head)], str(model)
    for layer in model.layers if in_groups else ():
        fully_shard(layer)
    assert fully_shard(model) is model and fully_shard(model) is model
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)
    data, labels = torch.rand(47, 16), torch.randint(3, (47,))
    data[:, 0] = (torch.arange(47) % 4 == 0).float() * (labels == 0)
    seen = []
    for _ in range(2):
        model.train()
        for rows in torch.arange(47).split(7):
            x, y = data[rows], labels[rows]
            output = model(x, y) if isinstance(model, WithLoss) else model(x)
            if isinstance(model, Viewed):
                output *= 2
            loss = output[1] if isinstance(model, WithLoss) else F.cross_entropy(output, y)
            step.zero_grad()
            (loss / 2).backward(retain_graph=True)  # and once more, for the other half
            (loss / 2).backward()
            F.mse_loss(model(x[:5]), torch.zeros(5, 3)).backward()
            step.step()
            seen.append(loss.item())
        model.eval()
        with torch.no_grad():
            seen += [(model(data[rows]).argmax(1) == labels[rows]).float().mean().item() for rows in [range(20), [3]]]
    assert (type(model), [*vars(model)], [*vars(model.head)], str(model)) == face or torch.distributed.is_initialized()
    parameters: list[Any] = [*model.parameters()]
    state = [each for of in step.state.values() for each in of.values() if each.dim()]
    kept = [parameters, [each.grad for each in parameters if each.grad is not None], state]
    counts = [sum(each.to_local().numel() if is_part(each) else each.numel() for each in of) for of in kept]
    whole = [(each.full_tensor() if is_part(each) else each).detach() for each in parameters]
    return whole, seen, counts, (face[0] is type(model), face[3] == str(model))


def is_part(tensor: Any) -> bool:
    return hasattr(tensor, "to_local")


def difference(first: list[Tensor], second: list[Tensor]) -> float:
    one, other = (torch.cat([each.double().flatten() for each in of]) for of in (first, second))
    return float((one - other).norm() / one.norm())


@pytest.mark.parametrize(
    ("kind", "in_groups", "ranks"),
    [(Net, True, 2), (WithLoss, False, 3), (Viewed, False, 2), (Coupled, False, 2), (SomeRowsOnly, True, 2)],
)
def test_it_trains_the_same(kind: type[Net], in_groups: bool, ranks: int) -> None:
    [(whole, seen, _, _)] = processes.run(1, trained, kind, in_groups, "SGD")
    for found, numbers, _, same in processes.run(ranks, trained, kind, in_groups, "SGD"):
        assert difference(whole, found) < 1e-5  # BatchNorm
        assert numbers == pytest.approx(seen, rel=1e-4, abs=1e-6)
        assert same == (True, True)


def test_a_rank_keeps_its_part() -> None:
    [(_, _, alone, _)] = processes.run(1, trained, Net, True, "Adam")
    parts = [counts for _, _, counts, _ in processes.run(2, trained, Net, True, "Adam")]
    assert all(part <= 0.55 * all for counts in parts for part, all in zip(counts, alone, strict=True))
    assert [sum(counts) for counts in zip(*parts, strict=True)] == alone


def told(function: Callable[[nn.Module], Any], model: nn.Module) -> str:
    warnings.simplefilter("ignore")
    try:
        function(model)
    except RuntimeError as error:
        return str(error)
    return ""


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))


class Strange(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return Holder(super().forward(x))


class Holder:
    def __init__(self, value: Tensor) -> None:
        self.value = value


def strange(model: nn.Module) -> None:
    fully_shard(model)
    model(torch.rand(4, 2)).value.sum().backward()


@pytest.mark.parametrize(
    ("function", "model", "message"),
    [
        (fully_shard, Scale(), "Scale.scale has a single number"),
        (fully_shard, nn.LazyLinear(3), "no size before the first forward"),
        (strange, Strange(2, 2), "returns a Holder"),
    ],
)
def test_what_would_go_wrong_ends(function: Callable[..., Any], model: nn.Module, message: str) -> None:
    for answer in processes.run(2, told, function, model):
        assert message in answer
