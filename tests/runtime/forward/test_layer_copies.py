"""Copies of layers: what copy.deepcopy makes of them, whatever they hold."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from ddpify_runtime.forward.layer_copies import copy_layers
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm


class Own(nn.Module):
    """Holds what trial copies must not share."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(3, 3)
        self.layers = nn.ModuleList([self.twice, nn.BatchNorm1d(3), nn.Dropout(0.1)])
        self.history: list[Any] = []
        self.seen = {"rows": [1], "layer": self.twice}
        self.shape = (1, 2)
        self.of_lists = ([1], [2])
        self.kept = torch.ones(2)


def copy_of(module: nn.Module) -> nn.Module:
    memo: dict[int, Any] = {}
    copy_layers(module, memo)
    return deepcopy(module, memo)


def test_a_copy_is_that_of_deepcopy_and_shares_nothing() -> None:
    model = nn.Sequential(Own(), nn.LSTM(3, 3), weight_norm(nn.Linear(3, 3)), nn.MultiheadAttention(4, 2))
    made, expected = copy_of(model), deepcopy(model)
    for one, other, original in zip(made.modules(), expected.modules(), model.modules(), strict=True):
        assert type(one) is type(other) and one is not original
        assert vars(one).keys() == vars(other).keys()
    state = expected.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in made.state_dict().items())
    own: Any = made[0]  # type: ignore[index]
    mine: Any = model[0]
    assert own.layers[0] is own.twice is own.seen["layer"] and own.seen["rows"] is not mine.seen["rows"]
    assert own.history is not mine.history and own.of_lists[0] is not mine.of_lists[0]
    assert not {id(tensor) for tensor in tensors(made)} & {id(tensor) for tensor in tensors(model)}


class Handled(nn.Module):
    """Keeps the handle of a hook of its part, as models of transformers do whose inputs shall require gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.handles = [self.layer.register_forward_hook(doubled)]


def doubled(layer: nn.Module, given: Any, output: Tensor) -> Tensor:
    return 2 * output


def test_the_handle_of_a_hook_is_that_of_the_copy_and_can_be_copied_again() -> None:
    made: Any = copy_of(copy_of(Handled()))
    x = torch.ones(1, 2)
    doubled_output = made.layer(x)
    made.handles[0].remove()
    assert torch.equal(doubled_output, 2 * made.layer(x))


def tensors(module: nn.Module) -> list[Tensor]:
    kept = [value for part in module.modules() for value in vars(part).values() if isinstance(value, Tensor)]
    return [*kept, *module.parameters(), *module.buffers()]
