"""A layer is followed once for the same values, however many layers call it: not 2 to the power of their depth."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.statements import Follower

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided

LAYERS = """\
class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def forward(self, x):
        return {leaf}
"""
LAYER = """\
class Layer{n}(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = {inner}()
        self.b = nn.ModuleList([self.a])
    def forward(self, x):
        x = self.a(x) + self.a(x)
        for layer in self.b:
            x = layer(x)
        return x
"""
NET = """\
model = nn.Sequential(Layer8(), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def nested(leaf: str, before: str = "") -> str:
    layers = "".join(LAYER.format(n=n, inner=f"Layer{n - 1}" if n else "Leaf") for n in range(9))
    return LAYERS.format(leaf=leaf) + before + layers + NET + TRAINING


def test_layers_in_layers_take_as_long_as_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    work, run = [0], Follower.run

    def counted(follower: Follower) -> None:
        run(follower)
        work.append(follower.work)

    monkeypatch.setattr(Follower, "run", counted)
    assert not reasons(nested("self.out(x)"))
    assert max(work) < 6_000  # 4 ** 9 leaves


def test_the_innermost_is_looked_at_all_the_same() -> None:
    assert undivided(nested("self.out(x) - x.mean(0)"))


def test_what_a_layer_keeps_is_not_forgotten() -> None:
    """Its second call computes with the batch of the first, of which another call is given the mean."""
    keeps = "class Keeps(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = 0.0\n"
    keeps += "    def forward(self, x):\n        y = x - self.seen\n        self.seen = x.mean(0)\n        return y\n"
    program = keeps + LAYERS.format(leaf="self.out(x)") + "model = nn.Sequential(Leaf(), Keeps(), nn.Linear(4, 3))\n"
    assert undivided(program + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + TRAINING)
