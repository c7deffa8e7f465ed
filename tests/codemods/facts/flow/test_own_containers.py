"""Classes derived from nn.Sequential, nn.ModuleList and nn.ModuleDict: their layers are followed."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided, wrapped

LAYERS = """\
class Center(nn.Module):
    def forward(self, x):
        return x - x.mean(0)

class Twice(nn.Module):
    def forward(self, x):
        return 2 * x

class Block({base}):
    def __init__(self):
        {made}
{forward}
model = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
NUMBERED = "super().__init__()\n        for i in range(2):\n            self.add_module('layer%d' % i, {layer}())"
ONE_BY_ONE = "    def forward(self, x):\n        for {each}:\n            x = layer(x)\n        return x\n"
CLASSES = [
    ("nn.Sequential", "super().__init__(nn.Linear(4, 4), {layer}())", ""),
    ("nn.Sequential", "super(Block, self).__init__()\n        self.add_module('a', {layer}())", ""),
    ("nn.Sequential", "super().__init__(*[{layer}() for _ in range(2)])", ""),
    (
        "nn.Sequential",
        "super().__init__({layer}())",
        "    def forward(self, x):\n        return x + super().forward(x)\n",
    ),
    ("nn.Sequential", "super().__init__()\n        self.a = {layer}()", ""),
    ("nn.Sequential", "super().__init__({layer}())", ONE_BY_ONE.format(each="layer in self")),
    ("nn.ModuleList", "super().__init__([{layer}()])", ONE_BY_ONE.format(each="i, layer in enumerate(self)")),
    ("nn.ModuleDict", NUMBERED, ONE_BY_ONE.format(each="name, layer in self.items()")),
    ("nn.ModuleDict", NUMBERED, ONE_BY_ONE.format(each="layer in self.values()")),
]


@pytest.mark.parametrize(("base", "made", "forward"), CLASSES)
def test_layers_that_keep_samples_apart(base: str, made: str, forward: str) -> None:
    source = LAYERS.format(base=base, made=made.format(layer="Twice"), forward=forward) + TRAINING
    assert undivided(source) == []
    assert wrapped(source).models and not followed(source).found.unused


@pytest.mark.parametrize(("base", "made", "forward"), CLASSES)
def test_layers_that_couple_samples(base: str, made: str, forward: str) -> None:
    assert undivided(LAYERS.format(base=base, made=made.format(layer="Center"), forward=forward) + TRAINING)


def test_a_layer_that_such_a_class_never_calls_is_refused() -> None:
    made = "super().__init__()\n        self.a = Center()"
    source = LAYERS.format(base="nn.ModuleDict", made=made, forward="    def forward(self, x):\n        return x\n")
    assert any("not seen" in each for each in reasons(source + TRAINING))
