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


def nested(leaf: str) -> str:
    return leaf + "".join(LAYER.format(n=n, inner=f"Layer{n - 1}" if n else "Leaf") for n in range(9)) + NET + TRAINING


NORMED = """\
class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.bar = nn.Parameter(torch.ones(4, 4))
        self.u = torch.ones(4)
    def forward(self, x):
        for _ in range(1):
            self.u = self.bar.mv(self.u) / self.bar.norm()
        self.weight = self.bar / self.u.dot(self.u)
        return x @ self.weight{after}
"""


@pytest.mark.parametrize("leaf", [LAYERS.format(leaf="self.out(x)"), NORMED.format(after="")])
def test_layers_in_layers_take_as_long_as_they_are_many(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they set what is the same on all ranks, as spectral normalization does."""
    work, run = [0], Follower.run

    def counted(follower: Follower) -> None:
        run(follower)
        work.append(follower.work)

    monkeypatch.setattr(Follower, "run", counted)
    assert not reasons(nested(leaf))
    assert max(work) < 6_000  # 4 ** 9 leaves


def test_the_innermost_is_looked_at_all_the_same() -> None:
    assert undivided(nested(LAYERS.format(leaf="self.out(x) - x.mean(0)")))
    assert undivided(nested(NORMED.format(after=" - x.mean(0)")))


def test_what_a_layer_keeps_is_not_forgotten() -> None:
    """Its second call computes with the batch of the first, of which another call is given the mean."""
    keeps = "class Keeps(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = 0.0\n"
    keeps += "    def forward(self, x):\n        y = x - self.seen\n        self.seen = x.mean(0)\n        return y\n"
    program = keeps + LAYERS.format(leaf="self.out(x)") + "model = nn.Sequential(Leaf(), Keeps(), nn.Linear(4, 3))\n"
    assert undivided(program + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + TRAINING)


READS = """\
class Mode(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = {begins}
class Reads(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode
    def forward(self, x):
        return {reads}
class Sets(nn.Module):
    def __init__(self, mode, reads):
        super().__init__()
        self.mode, self.reads = mode, reads
    def forward(self, x):
        self.mode.kind = None
        y = self.reads(x)
        self.mode.kind = {ends}
        return y
class Then(Sets):
    def forward(self, x):
        self.mode.kind = {then}
        y = self.reads(x)
        self.mode.kind = 1
        return y
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        mode = Mode()
        reads = Reads(mode)
        self.a, self.b, self.reads, self.out = Sets(mode, reads), Then(mode, reads), reads, nn.Linear(4, 3)
    def forward(self, x):
        return self.out({calls})
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = Both()
    def forward(self, x):
        return self.both(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
IF_ANY = "x if self.mode.kind is None else x - x.mean(0)"


@pytest.mark.parametrize(
    ("reads", "begins", "ends", "then", "calls", "is_undivided"),
    [
        ("x - self.mode.kind", 1, 1, "0.5", "self.a(x) + self.b(x)", False),
        ("x - self.mode.kind", 1, 1, "x.mean(0)", "self.a(x) + self.b(x)", True),
        (IF_ANY, 1, 1, "None", "self.a(x) + self.b(x)", False),
        (IF_ANY, 1, 1, "0.5", "self.a(x) + self.b(x)", True),
        (IF_ANY, None, None, "None", "self.reads(x) + self.a(x) + self.reads(x)", False),
        (IF_ANY, None, 1, "None", "self.reads(x) + self.a(x) + self.reads(x)", True),
    ],
)
def test_what_is_set_meanwhile_is_not_taken_for_what_it_was(
    reads: str, begins: int | None, ends: int | None, then: str, calls: str, is_undivided: bool
) -> None:
    program = READS.format(reads=reads, begins=begins, ends=ends, then=then, calls=calls) + TRAINING
    assert bool(undivided(program)) is is_undivided
