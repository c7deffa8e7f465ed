"""Modules that nobody trains take this rank's rows of a batch, as those do that are trained."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from torch import Tensor, nn

from tests.runtime.processes import run

ROWS: list[int] = []


class Layers(nn.Module):
    """Notes how many rows it computes, where it counts."""

    def __init__(self, counts: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
        self.first = nn.Linear(6, 6)
        self.counts = counts

    def forward(self, x: Tensor) -> Tensor:
        if self.counts:
            ROWS.append(len(x))
        out: Tensor = self.layers(self.first(x))
        return out


class Mixing(Layers):
    """Mixes the samples of a batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0))


class WithoutGradients(Layers):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def frozen(module: nn.Module) -> nn.Module:
    return module.double().eval().requires_grad_(False)


def made(kind: str) -> nn.Module:
    module = {"mixing": Mixing, "decorated": WithoutGradients}.get(kind, Layers)(counts=True)
    return module.double().train() if kind == "training" else frozen(module)


def trained(kind: str) -> tuple[list[float], list[float], int]:
    """The parameters and what was seen meanwhile, and the rows that the untrained module computed in the last pass."""
    torch.manual_seed(0)
    model, other = Layers().double(), made(kind)
    size = 4 if kind == "features" else 6
    if kind == "features":
        other.first = frozen(nn.Linear(4, 6))
    data = [(torch.randn(6, dtype=torch.float64), i % 4) for i in range(26)]
    loader: Any = DataLoader(data, 6, shuffle=True)  # type: ignore[arg-type]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    seen: list[float] = []
    for _ in range(3):
        ROWS.clear()
        for x, y in loader:
            out = model(x)
            if kind == "features":  # a loss of what another network sees, through which gradients go
                loss = F.mse_loss(other(out), other(F.one_hot(y, size).double()))
            else:
                with torch.no_grad():
                    told = other(x)
                    seen.append(float(told.square().mean()))
                loss = F.cross_entropy(out, y) + F.mse_loss(out, told)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        if kind == "averaged":
            with torch.no_grad():
                for mean, new in zip(other.parameters(), model.parameters(), strict=True):
                    mean.lerp_(new, 0.5)
            hits = sum(int((other(x).argmax(1) == y).sum()) for x, y in loader)
            seen.append(hits)
    parameters = torch.cat([each.detach().flatten() for each in (*model.state_dict().values(), *other.buffers())])
    assert copy.deepcopy(other)(torch.randn(5, size, dtype=torch.float64)).shape == (5, 4)
    return parameters.tolist(), seen, sum(ROWS)


KINDS = ["teacher", "training", "averaged", "features", "decorated", "mixing"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["", "original"])
@pytest.mark.filterwarnings("ignore")
def test_an_untrained_module_takes_its_share(kind: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", mode)
    [(parameters, seen, rows)] = run(1, trained, kind)
    for ranks in (2, 3):
        for found in run(ranks, trained, kind):
            torch.testing.assert_close(found[0], parameters, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(found[1], seen, rtol=1e-9, atol=1e-12)
            assert found[2] == rows if kind == "mixing" else found[2] < rows * 0.75, (found[2], rows)


def trained_later(is_made_distributed: bool) -> tuple[list[float], int]:
    """A module that was evaluated first, and is trained then; the rows that it computed in that."""
    torch.manual_seed(0)
    model, other = Layers().double(), Layers(counts=True).double()
    data = [(torch.randn(6, dtype=torch.float64), i % 4) for i in range(24)]
    loader: Any = DataLoader(data, 6)  # type: ignore[arg-type]
    DistributedDataParallel(model)
    with torch.no_grad():
        for x, _ in loader:
            other(x)
    if is_made_distributed:
        DistributedDataParallel(other)
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    for x, y in [*loader, *loader]:
        ROWS.clear()
        optimizer.zero_grad()
        F.cross_entropy(other(x), y).backward()
        optimizer.step()
    return torch.cat([each.detach().flatten() for each in other.parameters()]).tolist(), sum(ROWS)


@pytest.mark.parametrize("is_made_distributed", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_what_is_trained_after_all(is_made_distributed: bool) -> None:
    [(alone, rows)] = run(1, trained_later, is_made_distributed)
    for found, of_rank in run(2, trained_later, is_made_distributed):
        torch.testing.assert_close(found, alone, rtol=1e-9, atol=1e-12)
        assert of_rank == (rows // 2 if is_made_distributed else rows)


LATE: list[int] = []


class MixingLater(Layers):
    """Mixes the samples of a batch once LATE says so, which no number of its own tells."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0) if LATE else x)


def mixes_later(by_name: bool) -> tuple[str, list[float]]:
    """What stops a training whose teacher begins to mix samples, and what it said of each batch."""
    LATE.clear()
    torch.manual_seed(0)
    model, teacher = Layers().double(), frozen(MixingLater())
    DistributedDataParallel(model)
    said = []
    for step, (x, _) in enumerate(DataLoader([(torch.randn(6, dtype=torch.float64), 0) for _ in range(60)], 6)):  # type: ignore[arg-type]
        if step == 3:
            LATE.append(step)
        try:
            with torch.no_grad():
                out = teacher.forward(x) if by_name else teacher(x)
            said.append(float(out.square().mean()))
        except RuntimeError as error:
            return str(error), said
    return "", said


@pytest.mark.filterwarnings("ignore")
def test_a_teacher_that_begins_to_mix_samples_stops_the_run_and_says_how_it_goes_on() -> None:
    for error, _ in run(2, mixes_later, False):
        assert " of MixingLater was divided over the processes, but at call 4" in error
        assert error.endswith("call its `forward` by name, which is not divided")
    [(_, alone)] = run(1, mixes_later, True)
    for error, said in run(2, mixes_later, True):
        assert not error
        torch.testing.assert_close(said, alone, rtol=1e-12, atol=1e-12)
