"""What code a forward may run: of its classes, and of what these name."""

from __future__ import annotations

from ddpify_runtime.forward import model_code
from torch import Tensor, nn

from . import states


def named(x: Tensor) -> Tensor:
    return inner(x)


def inner(x: Tensor) -> Tensor:
    return x


def another(x: Tensor) -> Tensor:
    return x


class Base(nn.Module):
    @property
    def size(self) -> int:
        return 3

    def forward(self, x: Tensor) -> Tensor:
        return Helper().computed(x)


class Helper:
    def computed(self, x: Tensor) -> Tensor:
        return named(x)


class Other(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return another(x)


class Tracker:
    """No module: a part only holds it."""

    def tracked(self, x: Tensor) -> Tensor:
        return states.kept_state(x)


class Net(Base):
    def __init__(self, other: bool = False) -> None:
        super().__init__()
        self.tracker = Tracker()
        self.part = Other() if other else nn.Linear(1, 1)


def test_the_code_of_a_module() -> None:
    found = {code.co_name for code in model_code.codes(nn.Sequential(Net()))}
    assert {"__init__", "forward", "computed", "named", "inner", "size", "tracked", "kept_state", "of_all"} <= found
    assert "another" not in found
    assert "another" in {code.co_name for code in model_code.codes(Net(other=True))}


def test_the_classes_of_a_module() -> None:
    assert model_code.classes(nn.Sequential(Net())) == {Net, Base}
