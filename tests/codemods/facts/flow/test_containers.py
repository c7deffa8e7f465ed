"""Layers in containers, and copies of layers, compute what their classes say: a layer that couples samples is seen."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided

NET = """\
import copy
from collections import OrderedDict
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def forward(self, x):
        return {computes}
class Net(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        {made}
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        {called}
        return self.head(x)
model = Net(Layer(), Layer())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EACH = "for layer in self.layers:\n            x = layer(x)"
CONTAINERS = [
    ("self.layers = nn.ModuleList([Layer() for _ in range(3)])", EACH),
    ("self.layers = nn.ModuleList(layers)", EACH),
    ("self.layers = nn.ModuleList(Layer() for _ in range(3))", "for i in range(3):\n            x = self.layers[i](x)"),
    ("self.layers = nn.ModuleList()\n        self.layers.append(Layer())", EACH),
    ("self.layers = nn.ModuleList([copy.deepcopy(Layer()) for _ in range(3)])", EACH),
    ("self.layers = nn.ModuleList([Layer()])", "for i, layer in enumerate(self.layers):\n            x = layer(x)"),
    ("self.layers = nn.ModuleList([Layer()])", "for layer, k in zip(self.layers, (3,)):\n            x = layer(x)"),
    ("self.layers = nn.ModuleList([Layer()])", "x = self.layers[-1:][0](x)"),
    ("self.layers = nn.ModuleDict({'a': Layer()})", "x = self.layers['a'](x)"),
    ("self.layers = nn.ModuleDict({'a': Layer()})", "for k, layer in self.layers.items():\n            x = layer(x)"),
    ("self.layers = nn.Sequential(*layers)", "x = self.layers(x)"),
    ("self.layers = nn.Sequential(*[Layer() for _ in range(3)])", "x = self.layers(x)"),
    ("self.layers = nn.Sequential(OrderedDict([('a', Layer())]))", "x = self.layers(x)"),
    ("self.layers = nn.Sequential()\n        self.layers.add_module('a', Layer())", "x = self.layers(x)"),
    ("self.layers = nn.Sequential()\n        self.layers.add_module('a', Layer())", "x = self.layers.a(x)"),
    ("self.layers = nn.Sequential(Layer(), nn.Sequential(nn.ReLU(), Layer()))", "x = self.layers[1](x)"),
    ("self.layers = [Layer()]\n        self.all = nn.ModuleList(self.layers)", EACH),
    ("self.layers = nn.ModuleList([Layer()])", "x = self.layers[0](torch.special.erf(x))"),
    ("setattr(self, f'a{len(layers)}', Layer())", "x = getattr(self, f'a{2}')(x)"),
    ("self.add_module(f'a{len(layers)}', Layer())", "x = getattr(self, f'a{2}')(x)"),
    ("self.add_module('a', Layer())", "x = self.a(x)"),
]


def program(made: str, called: str, computes: str) -> str:
    return NET.format(made=made, called=called, computes=computes) + TRAINING


@pytest.mark.parametrize(("made", "called"), CONTAINERS)
def test_a_layer_that_couples_samples_is_seen(made: str, called: str) -> None:
    assert undivided(program(made, called, "self.out(x) - x.mean(0)"))


@pytest.mark.parametrize(("made", "called"), CONTAINERS)
def test_one_that_keeps_them_apart_is_divided(made: str, called: str) -> None:
    assert not undivided(program(made, called, "self.out(x) - x.mean(1, keepdim=True)"))


def test_a_layer_that_is_called_in_a_way_that_is_not_followed_is_a_problem() -> None:
    made, called = "self.inner = nn.Sequential(Layer())", "for part in self.inner.children():\n            x = part(x)"
    found = reasons(program(made, called, "self.out(x) - x.mean(0)"))
    assert any("what this layer computes is not seen" in each for each in found)


def test_a_network_whose_layers_are_called_one_by_one_need_not_be_called() -> None:
    made = "self.inner = Inner()"
    inner = "class Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Layer()\n"
    inner += "    def forward(self, x):\n        return x\nclass Net("
    assert not undivided(program(made, "x = self.inner.a(x)", "self.out(x)").replace("class Net(", inner))


@pytest.mark.parametrize(("other", "unused"), [("layer(x)", False), ("x", True)])
def test_layers_that_are_called_in_each_of_two_ways_are_used(other: str, unused: bool) -> None:
    made = "self.layers, self.deep = nn.ModuleList([Layer()]), len(layers) > 2"
    called = f"for layer in self.layers:\n            x = layer(layer(x)) if self.deep else {other}"
    found = followed(program(made, called, "self.out(x)")).found
    assert bool(found.unused) is unused


ENDS = [
    ("if len(layers) > 2: return x", True),
    ("if len(layers) > 2:\n                return self.out(x)", False),
    ("if len(layers) > 2:\n                return self.other(x)", True),
    ("for _ in layers:\n                if len(layers) > 2: return x", True),
    ("for each in layers:\n                if each is None: continue", False),
    ("if len(layers) > 2: raise ValueError", False),
    ("if not self.training: return x", False),
    ("x = x.relu()", False),
]


@pytest.mark.parametrize(("before", "unused"), ENDS)
def test_layers_behind_what_may_end_the_forward_are_used_at_times(before: str, unused: bool) -> None:
    inner = """\
class Inner(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.out, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x, layers):
            {before}
            return self.out(x)
class Net("""
    called = "for layer in self.layers:\n            x = layer(x, settings)"
    source = program("self.layers = nn.ModuleList([Inner(layers)])", called, "self.out(x)")
    source = source.replace("class Net(", inner.format(before=before)).replace("import copy\n", "import copy, sys\n", 1)
    source = source.replace("x, settings)", "x, sys.argv)")
    found = followed(source if "other" in before else source.replace("self.out, self.other", "self.out, _")).found
    assert bool(found.unused) is unused


@pytest.mark.parametrize(("word", "unused"), [("continue", True), ("break", True), ("pass", False)])
def test_layers_behind_what_may_end_a_turn_of_a_loop_are_used_at_times(word: str, unused: bool) -> None:
    called = f"for layer in self.layers:\n            if random.random() < 0.5: {word}\n            x = layer(x)"
    source = program("self.layers = nn.ModuleList([Layer()])", called, "self.out(x)")
    assert bool(followed("import random\n" + source).found.unused) is unused


def test_what_a_copy_is_given_is_not_given_to_the_original() -> None:
    made = "self.a = Layer()\n        self.b = copy.deepcopy(self.a)\n        self.b.out = Layer()"
    assert not undivided(program(made, "x = self.b(self.a(x))", "self.out(x)"))


def test_parts_of_a_container_whose_name_was_a_list_before() -> None:
    made = "self.layers = [Layer()]\n        self.layers.append(Layer())\n"
    made += "        self.layers = nn.Sequential(*self.layers)\n"
    made += "        self.low, self.high = self.layers[:1], self.layers[1:]"
    for computes, fine in (("self.out(x)", True), ("self.out(x - x.flip(0))", False)):
        assert (undivided(program(made, "x = self.high(self.low(x))", computes)) == []) is fine


def test_a_container_is_no_part_of_itself() -> None:
    """Several objects of a class are one here, and have what the one before had."""
    block = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList()
        self.conv.append(Layer())
        self.conv = nn.Sequential(*self.conv)
    def forward(self, x):
        return self.conv(x)
class Net("""
    made = "self.a = nn.Sequential(*[Block() for _ in range(2)])"
    for computes, fine in (("self.out(x)", True), ("self.out(x - x.flip(0))", False)):
        source = program(made, "x = self.a(x)", computes).replace("class Net(", block)
        assert (undivided(source) == []) is fine
