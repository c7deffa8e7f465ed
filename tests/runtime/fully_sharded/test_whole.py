"""A sharded module has the whole of its parameters for a while, and its parts again."""

from __future__ import annotations

import torch
from ddpify_runtime import fully_shard
from ddpify_runtime.fully_sharded.whole import is_sharded, whole
from torch import nn

from tests.runtime import processes


class Tied(nn.Module):
    """Two layers with one weight, and a recurrent one, which keeps its weights in a list too."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
        self.other.weight = self.one.weight
        self.recurrent = nn.GRU(3, 2)
        self.one.bias.requires_grad_(False)


def for_a_while() -> list[str]:
    torch.manual_seed(4)
    model = Tied()
    first = {name: each.detach().clone() for name, each in model.named_parameters()}
    x = torch.rand(4, 3)
    output = model.recurrent(x)[0]
    fully_shard(model)
    parts = dict(model.named_parameters())
    assert all(map(is_sharded, parts.values()))
    try:
        with whole(model):
            made = dict(model.named_parameters())
            assert [*made] == [*first] and not any(map(is_sharded, made.values()))
            assert all(torch.equal(each, first[name]) for name, each in made.items())
            assert [each.requires_grad for each in made.values()] == [each.requires_grad for each in parts.values()]
            assert model.other.weight is model.one.weight
            assert torch.equal(model.recurrent(x)[0], output)
            raise KeyError("in a trial")
    except KeyError:
        pass
    now = dict(model.named_parameters())
    assert all(now[name] is each for name, each in parts.items())
    return [*now]


def test_the_whole_for_a_while() -> None:
    names = [name for name, _ in Tied().named_parameters()]
    assert processes.run(2, for_a_while) == [names, names]


def test_a_module_that_is_not_sharded_keeps_its_own() -> None:
    model = nn.Linear(2, 2)
    weight = model.weight
    with whole(model):
        assert model.weight is weight and not is_sharded(weight)
    assert model.weight is weight
