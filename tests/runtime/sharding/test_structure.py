"""Inputs and outputs of any class: their tensors are divided, the rest stays what it is; why not is said truly."""

from __future__ import annotations

import types
import warnings
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.sharding.structure import copies, equal, flatten, give_back, unflatten
from torch import Tensor, nn
from torch.distributions import Normal

from tests.runtime.processes import run


@dataclass
class Out:
    logits: Tensor
    hidden: Any = None
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class Slots:
    logits: Tensor
    number: int = 3


@dataclass
class ModelOutput(OrderedDict[str, Any]):
    """Like that of transformers: each tensor is an item and an attribute."""

    loss: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) is not None:
                self[each.name] = getattr(self, each.name)


class Attributes(dict[str, Any]):
    """A dictionary that is read by attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Layer:
    def __init__(self, keys: Tensor) -> None:
        self.keys, self.dtype, self.length = keys, keys.dtype, torch.tensor(4)


class Cache:
    """Keys of each layer, as models with attention return them; refers to itself."""

    def __init__(self, *layers: Tensor) -> None:
        self.layers = [Layer(layer) for layer in layers]
        self.kind: Any = Layer
        self.itself = self


Pair = namedtuple("Pair", "logits other")

OUTPUTS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "dataclass": lambda logits, hidden: Out(logits, (hidden, [hidden])),
    "slots": lambda logits, hidden: Slots(logits),
    "model output": lambda logits, hidden: ModelOutput(logits=logits),
    "attributes": lambda logits, hidden: Attributes(logits=logits, deep={"er": Attributes(hidden=hidden)}),
    "namespace": lambda logits, hidden: types.SimpleNamespace(logits=logits, settings=Attributes(size=[4, "a"])),
    "user dict": lambda logits, hidden: UserDict(logits=logits),
    "named tuple": lambda logits, hidden: Pair(logits, None),
    "distribution": lambda logits, hidden: Out(logits, Normal(0.0, 1.0)),
}
REFUSED: dict[str, tuple[Callable[[Tensor, Tensor], Any], str]] = {
    "a generator": (lambda logits, hidden: Out(logits, (each for each in hidden)), "it returns a generator"),
    "a number": (lambda logits, hidden: Out(logits, len(logits)), "it returns 5, which is something else"),
    "a number by accident": (lambda logits, hidden: Out(logits, len(logits) // 8), "it returns 3, which is something"),
    "a distribution": (lambda logits, hidden: Out(logits, Normal(hidden, 1.0)), "it returns torch.Size([5, 5])"),
    "a sum of each column": (lambda logits, hidden: Out(logits, hidden.detach().cumsum(0)), "depend on the rest"),
    "a mean of each column": (
        lambda logits, hidden: Out(logits, hidden[:, :4].mean(0)),
        "a tensor of size [4] for 5 samples",
    ),
}


class Net(nn.Module):
    def __init__(self, wrap: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.first, self.last, self.wrap = nn.Linear(8, 5), nn.Linear(5, 3), wrap

    def forward(self, x: Tensor) -> Any:
        hidden = torch.tanh(self.first(x))
        return self.wrap(self.last(hidden), hidden)


class WithCache(Net):
    def forward(self, x: Tensor) -> Any:
        hidden = torch.tanh(self.first(x))
        logits = self.last(hidden)
        return Out(logits, Cache(hidden, logits.detach()))


def logits_of(output: Any) -> Tensor:
    logits: Tensor = output["logits"] if isinstance(output, UserDict) else output.logits
    return logits


def train(model: nn.Module, inputs: Callable[[Tensor], Any] = lambda x: x) -> tuple[Tensor, list[str], Any, Any]:
    """The parameters, what was said, the last input and output."""
    torch.manual_seed(0)
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.reset_parameters()
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(5):
            given = inputs(torch.randn(26, 8))
            output = model(given)
            loss = F.cross_entropy(logits_of(output), torch.randint(3, (26,)))
            if isinstance(output, Out) and isinstance(output.hidden, Cache):
                loss = loss + output.hidden.layers[0].keys.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    texts = [str(each.message) for each in said if str(each.message).startswith("ddpify")]
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach(), texts, given, output


def outputs() -> list[Any]:
    results = []
    for wrap in (*OUTPUTS.values(), *(wrap for wrap, _ in REFUSED.values())):
        parameters, said, _, output = train(Net(wrap))
        results.append((parameters, said, type(output).__name__, logits_of(output).detach()))
    parameters, said, _, output = train(WithCache(Pair))
    cache: Cache = output.hidden
    assert cache.itself is cache and cache.layers[0].keys.shape == (26, 5)
    assert cache.kind is Layer and cache.layers[1].length == 4
    return [*results, (parameters, said, "Cache", cache.layers[1].keys)]


def test_outputs_of_any_class() -> None:
    alone = run(1, outputs)[0]
    names = [*OUTPUTS, *REFUSED, "cache"]
    for found in run(2, outputs):
        for name, expected, got in zip(names, alone, found, strict=True):
            parameters, said, kind, logits = got
            torch.testing.assert_close(parameters, expected[0], rtol=1e-5, atol=1e-7, msg=name)
            torch.testing.assert_close(logits, expected[3], rtol=1e-5, atol=1e-6, msg=name)
            assert kind == expected[2]
            if name in REFUSED:
                assert len(said) == 1 and REFUSED[name][1] in said[0], (name, said)
            else:
                assert not said, (name, said)


class Takes(Net):
    """Reads its input by `x`, and leaves something there if it is told to."""

    def __init__(self, change: Callable[[Any, Tensor], None]) -> None:
        super().__init__(Pair)
        self.change = change

    def forward(self, batch: Any) -> Any:
        hidden = torch.tanh(self.first(batch[0] if isinstance(batch, list) else batch.x))
        self.change(batch, hidden)
        return Pair(self.last(hidden), None)


def nothing(batch: Any, hidden: Tensor) -> None: ...


def leave_attribute(batch: Any, hidden: Tensor) -> None:
    batch.hidden = hidden


def append(batch: Any, hidden: Tensor) -> None:
    batch.append(hidden)


INPUTS: dict[str, tuple[Callable[[Tensor], Any], Callable[[Any, Tensor], None]]] = {
    "namespace": (lambda x: types.SimpleNamespace(x=x, size=8), nothing),
    "attributes": (lambda x: Attributes(x=x), nothing),
    "namespace that is changed": (lambda x: types.SimpleNamespace(x=x), leave_attribute),
    "attributes that are changed": (lambda x: Attributes(x=x), leave_attribute),
    "list that is changed": (lambda x: [x], append),
}


def inputs() -> list[Any]:
    results = []
    for make, change in INPUTS.values():
        parameters, said, given, _ = train(Takes(change), make)
        left = None if change is nothing else given[1] if isinstance(given, list) else given.hidden
        results.append((parameters, said, left))
    return results


def test_inputs_of_any_class() -> None:
    alone = run(1, inputs)[0]
    for found in run(2, inputs):
        for (name, (_, change)), expected, (parameters, said, left) in zip(INPUTS.items(), alone, found, strict=True):
            torch.testing.assert_close(parameters, expected[0], rtol=1e-5, atol=1e-7, msg=name)
            if change is nothing:
                assert not said, (name, said)
            else:
                torch.testing.assert_close(left, expected[2], rtol=1e-5, atol=1e-6, msg=name)
                assert len(said) == 1 and "it changes its input" in said[0], (name, said)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_value_is_made_again_with_other_leaves(name: str) -> None:
    value = OUTPUTS[name](torch.zeros(4, 3), torch.ones(4, 5))
    leaves, form = flatten(value)
    made = unflatten([leaf + 1 if isinstance(leaf, Tensor) else leaf for leaf in leaves], form)
    assert type(made) is type(value) and flatten(made)[1] == form
    assert bool((logits_of(made) == 1).all()) and bool((logits_of(value) == 0).all())


def test_what_holds_no_tensor_stays_itself_and_is_compared_by_what_it_holds() -> None:
    one, other = types.SimpleNamespace(sizes=[1, 2]), types.SimpleNamespace(sizes=[1, 2])
    assert flatten((one,))[0] == [one] and flatten((one,))[0][0] is one
    assert equal(one, other) and not equal(one, types.SimpleNamespace(sizes=[1, 3]))
    assert equal(Attributes(a={}), Attributes(a={})) and not equal(Attributes(a={}), {"a": {}})
    assert equal(nothing, nothing) and not equal(partial(nothing, 1), partial(nothing, 1))
    assert not equal(object(), object())


def test_what_changes_in_copies_is_given_back() -> None:
    kept, gone, new = torch.ones(1), torch.zeros(1), torch.ones(2)
    beside = types.SimpleNamespace(old=kept, left=None)
    given = [kept, gone], {"a": kept, "b": {"c": gone}}, beside, (["word"], 3)
    leaves, form = flatten(given)
    made: Any = unflatten([leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves], form)
    pairs = copies(given, made)
    give_back(pairs)
    assert given[0][0] is kept and given[0][1] is gone
    made[0].append(new)
    made[1]["a"] = new
    del made[1]["b"]["c"]
    made[2].left = new
    give_back(pairs)
    assert given[0] == [kept, gone, new]
    assert given[0][0] is kept
    assert given[1] == {"a": new, "b": {}}
    assert beside.old is kept
    assert beside.left is new
