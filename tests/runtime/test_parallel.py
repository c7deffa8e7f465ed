"""What one process trains, two, three and four train: losses of many kinds, and the model stays the user's."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataParallel, DistributedDataParallel
from torch import Tensor, nn

from tests.runtime.processes import run
from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    linear,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


@case(linear)
def mean(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(linear)
def sum_and_regulariser(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y, reduction="sum") + 0.1 * sum(p.square().sum() for p in model.parameters())


@case(linear)
def divided_by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)
    yield F.cross_entropy(output, y, reduction="sum") / 12 + (output - x[:, :3]).square().sum() / len(x)


@case(linear)
def masked_and_weighted(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 2.0, 5.0]), ignore_index=1)


@case(linear)
def contrastive(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    z = F.normalize(model(x), dim=1)
    yield F.cross_entropy(z @ z.T / 0.5, y % len(x))


@case(linear)
def one_forward_two_backwards(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)
    yield F.cross_entropy(output, y)
    yield output.square().mean()


@case(linear)
def two_forwards_two_backwards(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    a, b = model(x), model(x.flip(1))
    yield F.cross_entropy(a, y)
    yield b.square().mean()


@case(Classifier)
def round_the_forward(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.head(torch.tanh(model.first(x))).square().mean()


@case(linear)
def changed_precision(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    model.double()
    yield F.cross_entropy(model(x.double()), y)


@case(lambda: nn.utils.spectral_norm(nn.Linear(8, 3)))
def spectral_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(linear)
def gradient_penalty(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    yield ((slope.norm(dim=1) - 1) ** 2).mean()


@case(lambda: DataParallel(linear()))
def data_parallel(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: nn.Sequential(nn.LazyLinear(6), nn.Tanh(), nn.Linear(6, 3)))
def lazy_parameters(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


def identity() -> dict[str, bool]:
    model = linear()
    distributed = DistributedDataParallel(model)
    distributed(torch.randn(4, 8)).sum().backward()
    return {
        "same object": distributed is model and type(model) is nn.Sequential,
        "again": DistributedDataParallel(model) is model,
        "keys": list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"],
        "pickle": b"ddpify" not in pickle.dumps(model),
        "copy": "_compiled_call_impl" not in vars(copy.deepcopy(model)),
    }


def test_the_model_stays_the_users() -> None:
    for answer in run(2, identity):
        assert all(answer.values()), answer


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)


def test_what_was_nn_dataparallel_moves_its_inputs_to_its_device() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: torch.Tensor, more: dict[str, list[torch.Tensor]], scale: float = 1.0) -> torch.Tensor:
            made: torch.Tensor = self.layer(x + more["x"][0])
            return made * scale

    model = DataParallel(Net().to("meta"))
    x = torch.ones(3, 2)
    assert model(x, {"x": [x]}, scale=2.0).device.type == "meta"
    model = DataParallel(Net())
    assert model(x, more={"x": [x]}).device.type == "cpu"


class Doubled(DataParallel[torch.nn.Linear]):
    """A class of a script's own, with a forward and a method."""

    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) * 2

    def name(self) -> str:
        return "doubled"


def test_copies_and_pickles_of_a_class_derived_from_nn_dataparallel_are_of_that_class() -> None:
    model, x = Doubled(torch.nn.Linear(2, 1)), torch.ones(3, 2)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for again in (copy.deepcopy(model), torch.load(file, weights_only=False), pickle.loads(pickle.dumps(model))):
        assert type(again) is Doubled and again.name() == "doubled" and torch.equal(again(x), model(x))
    assert type(pickle.loads(pickle.dumps(DataParallel(model.module)))) is torch.nn.DataParallel


def test_what_was_nn_dataparallel_says_its_device() -> None:
    model = Doubled(torch.nn.Linear(2, 1), dim=1)
    assert (model.dim, model.src_device_obj, model.output_device) == (1, torch.device("cpu"), torch.device("cpu"))
    model.output_device = 3  # as a class of a script's own may
    assert model.output_device == 3


def test_a_class_derived_from_nn_dataparallel_gives_the_devices_that_go() -> None:
    class Patched(DataParallel[torch.nn.Linear]):
        """As DataParallelWithCallback of Synchronized-BatchNorm-PyTorch."""

    layer = torch.nn.Linear(2, 1)
    model = Patched(layer, device_ids=[0, 1], output_device=0)
    assert model.module is layer and model.device_ids == []


class Pair:
    """No module; it trains those that it holds."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.layers = [nn.Linear(4, 8)]
        self.out = nn.Linear(8, 1)

    def parameters(self) -> list[nn.Parameter]:
        return [*self.layers[0].parameters(), *self.out.parameters()]

    def __call__(self, x: Tensor) -> Tensor:
        output: Tensor = self.out(torch.relu(self.layers[0](x)))
        return output


class Bare:
    def __init__(self) -> None:
        self.out, self.scale = nn.Linear(4, 1), torch.ones(1, requires_grad=True)


def of_a_pair() -> tuple[list[Tensor], str]:
    pair = DistributedDataParallel(Pair())  # type: ignore[type-var]
    torch.manual_seed(1)
    pair(torch.rand(6, 4)).square().mean().backward()
    try:
        DistributedDataParallel(Bare())  # type: ignore[type-var]
    except TypeError as error:
        return [p.grad for p in pair.parameters() if p.grad is not None], str(error)
    return [], ""


def test_the_modules_of_an_object_that_is_none() -> None:
    pair = Pair()
    torch.manual_seed(1)
    pair(torch.rand(6, 4)).square().mean().backward()
    for gradients, error in run(2, of_a_pair):
        torch.testing.assert_close(gradients, [p.grad for p in pair.parameters()])
        assert "a Bare is no torch.nn.Module" in error


class Named(dict[str, nn.Module]):
    """A dictionary whose values are attributes, too, and which has no others."""

    def __getattr__(self, name: str) -> nn.Module:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def of_dictionaries() -> tuple[list[Tensor], str]:
    plain, named = dictionaries()
    assert DistributedDataParallel(plain) is plain  # type: ignore[type-var]
    assert DistributedDataParallel(named) is named  # type: ignore[type-var]
    torch.manual_seed(1)
    plain["net"](named.net(torch.rand(6, 4))).square().mean().backward()
    try:
        DistributedDataParallel({"lr": 0.1})  # type: ignore[type-var]
    except TypeError as error:
        return [p.grad for each in (plain, named) for p in each["net"].parameters() if p.grad is not None], str(error)
    return [], ""


def dictionaries() -> tuple[dict[str, nn.Module], Named]:
    torch.manual_seed(0)
    return {"net": nn.Linear(3, 1)}, Named(net=nn.Linear(4, 3))


def test_the_modules_of_a_dictionary() -> None:
    plain, named = dictionaries()
    torch.manual_seed(1)
    plain["net"](named.net(torch.rand(6, 4))).square().mean().backward()
    expected = [p.grad for each in (plain, named) for p in each["net"].parameters()]
    for gradients, error in run(2, of_dictionaries):
        torch.testing.assert_close(gradients, expected)
        assert "a dict is no torch.nn.Module" in error
