"""A trained module that is never called, and its parts are: these take this rank's rows, and it trains the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, rank_zero_only
from ddpify_runtime.forward.called_parts import WaitingCall
from ddpify_runtime.torch_internals import CALL
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.runtime.processes import run

ROWS: list[int] = []
STEPS, SAMPLES = 6, 8


class Part(nn.Module):
    """Notes how many rows it computes."""

    def __init__(self, inputs: int, outputs: int, *more: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 5), *more, nn.Tanh(), nn.Linear(5, outputs))

    def forward(self, x: Tensor) -> Tensor:
        ROWS.append(len(x))
        out: Tensor = self.layers(x)
        return out


class Model(nn.Module):
    def __init__(self, *more: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder, self.norm = Part(6, 4, *more), Part(4, 6), nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def encode(self, x: Tensor) -> Tensor:
        out: Tensor = self.encoder(x)
        return out

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.decoder(self.encoder(x))
        return out


Loss = Callable[[Any, Tensor, int], Tensor]
LOSSES: dict[str, Loss] = {
    "called": lambda model, x, step: F.mse_loss(model.decoder(model.encoder(x)), x),
    "by a method": lambda model, x, step: F.mse_loss(model.decoder(model.encode(x)), x),
    "by its forward": lambda model, x, step: F.mse_loss(model.forward(x), x),
    "twice": lambda model, x, step: (model.encoder(x) - model.encoder(x.flip(1))).square().mean() + rest(model, x),
    "weights beside": lambda model, x, step: F.mse_loss(model.decoder(model.encoder(x) * model.scale), x),
    "weights outside": lambda model, x, step: F.mse_loss(model.decoder(model.encoder(x)), x) + penalty(model),
    "mixed": lambda model, x, step: pairs(model.encoder(x)) + rest(model, x),
    "a batch norm": lambda model, x, step: F.mse_loss(model.decoder(model.norm(model.encoder(x))), x),
    "a whole batch": lambda model, x, step: F.mse_loss(model.decoder(model.encoder(torch.cat([x, x]))), x.repeat(2, 1)),
}
WHOLE: dict[str, Loss] = {
    "itself": lambda model, x, step: F.mse_loss(model(x), x),
    "checkpointed": lambda model, x, step: rest(model, checkpoint(model.encoder, x, use_reentrant=False)),
    "checkpointed, reentrant": lambda model, x, step: rest(
        model, checkpoint(model.encoder, x.clone().requires_grad_(), use_reentrant=True)
    ),
    "itself later": lambda model, x, step: F.mse_loss(
        model(x) if step % 3 == 2 else model.decoder(model.encoder(x)), x
    ),
    "alone": lambda model, x, step: (
        rank_zero_only(lambda: model.encoder(x.clone()[:2]))(),
        F.mse_loss(model.decoder(model.encoder(x)), x),
    )[1],
}


def rest(model: Any, x: Tensor) -> Tensor:
    return F.mse_loss(model.decoder(x[:, :4]), torch.ones_like(x[:, :1]).expand(-1, 6))


def penalty(model: Any) -> Tensor:
    total: Tensor = model.encoder.layers[0].weight.square().sum() + model.scale.square()
    return total


def pairs(x: Tensor) -> Tensor:
    total: Tensor = (x @ x.T).softmax(1).diagonal().mean()
    return total


def trained(name: str, more: tuple[str, ...] = ()) -> tuple[list[float], list[float], int, int]:
    """The parameters, the losses, the rows that the parts computed in the last step, and what still waits."""
    ROWS.clear()
    torch.manual_seed(0)
    model: Any = Model(*([nn.Dropout(0.3)] if "dropout" in more else [])).double()
    if "batch norm" in more:
        model.encoder.layers.insert(1, nn.BatchNorm1d(5).double())
    data = [(torch.randn(6, dtype=torch.float64), 0) for _ in range(SAMPLES * STEPS - 3)]
    loader: Any = DataLoader(data, SAMPLES, shuffle=True)  # type: ignore[arg-type]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step, (x, _) in enumerate(loader):
        if "plain" in more:
            x = torch.randn(SAMPLES, 6, dtype=torch.float64)
        ROWS.clear()
        loss = {**LOSSES, **WHOLE}[name](model, x, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if "evaluated" in more:
            model.eval()
            with torch.no_grad():
                losses.append(float(model.decoder(model.encoder(x)).square().mean()))
            model.train()
        assert set(model.state_dict()) == set(copy.deepcopy(model).state_dict())
    waiting = sum(isinstance(vars(part).get(CALL), WaitingCall) for part in model.modules())
    return [float(p.detach().sum()) for p in model.state_dict().values()], losses, sum(ROWS), waiting


OF_A_KIND = [*((name, ()) for name in LOSSES), *((name, ("dropout", "batch norm")) for name in ("called", "mixed"))]


@pytest.mark.parametrize(("name", "more"), [*OF_A_KIND, ("called", ("plain", "evaluated"))], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_parts_take_their_share(name: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    [(parameters, losses, rows, _)] = run(1, trained, name, more)
    for ranks in (2, 3):
        for found in run(ranks, trained, name, more):
            torch.testing.assert_close(found[0], parameters, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(found[1], losses, rtol=1e-9, atol=1e-12)
            assert found[2] < rows * (0.75 if ranks == 2 else 0.5), (found[2], rows)


@pytest.mark.parametrize("more", [("dropout", "evaluated")], ids=str)
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.filterwarnings("ignore")
def test_neighbours_train_the_same(name: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    [(parameters, losses, _, _)] = run(1, trained, name, more)
    for ranks in (2, 3):
        for found in run(ranks, trained, name, more):
            torch.testing.assert_close(found[0], parameters, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(found[1], losses, rtol=1e-9, atol=1e-12)
            assert not found[3] or name != "itself"


class Fills(Part):
    """Puts what it has computed into what it gets beside, and rejects what is far from the rest."""

    def forward(self, x: Tensor, taps: list[Tensor], beside: Any) -> Tensor:  # type: ignore[override]
        if (x.abs() > 99).any():
            raise ValueError("an outlier")
        beside.hidden = super().forward(x)
        taps.append(beside.hidden)
        return taps[-1]


def trained_of_filled(called: bool) -> tuple[list[float], list[float]]:
    """The parameters and the losses; called: whether the module itself is, rather than its parts."""
    torch.manual_seed(0)
    part = Fills(6, 4).double()
    model: Any = part if called else nn.ModuleList([part, nn.Linear(4, 6).double()])
    head = model if called else model[1]
    data = [(torch.randn(6, dtype=torch.float64), 0) for _ in range(45)]
    loader: Any = DataLoader(data, SAMPLES, shuffle=True)  # type: ignore[arg-type]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step, (x, _) in enumerate(loader):
        if step == 3:
            x = torch.cat([x[1:], 100 + x[:1]])
        taps: list[Tensor] = []
        beside = SimpleNamespace(hidden=None)
        try:
            h = (model if called else model[0])(x, taps, beside)
        except ValueError:
            losses.append(-1.0)
            continue
        loss = (h if called else head(h)).square().mean() + taps[0].mean() + beside.hidden.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [float(p.detach().sum()) for p in model.parameters()], losses


@pytest.mark.parametrize("called", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_what_parts_fill_is_filled(called: bool) -> None:
    [(parameters, losses)] = run(1, trained_of_filled, called)
    assert losses[3] == -1
    for ranks in (2, 3):
        for found in run(ranks, trained_of_filled, called):
            torch.testing.assert_close(found[0], parameters, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(found[1], losses, rtol=1e-9, atol=1e-12)


class Embedded(torch.utils.data.Dataset[Tensor]):
    """Samples that the model has computed when they are loaded."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.rows = model, torch.randn(45, 6, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        with torch.no_grad():
            out: Tensor = self.model(self.rows[index : index + 1].expand(2 + index % 3, -1))[0]
        return out + self.rows[index]


def trained_of_embedded(workers: int) -> list[float]:
    """The parameters of a model that computes its samples, too."""
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6)).double()
    data = Embedded(model)
    loader: Any = DataLoader(data, SAMPLES, shuffle=True, num_workers=workers)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [float(p.detach().sum()) for p in model.parameters()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore")
def test_models_that_load_are_whole_there(workers: int) -> None:
    [parameters] = run(1, trained_of_embedded, workers)
    for found in run(2, trained_of_embedded, workers):
        torch.testing.assert_close(found, parameters, rtol=1e-9, atol=1e-12)
