"""functools.partial: what it makes of functions and classes is followed, or nothing is known of it."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, training, undivided

NET = """\
from functools import partial


def mixed(h, scale=0.0):
    return h - scale * h.mean(0)


class Mixing(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.scale = scale

    def forward(self, h):
        return h * {by}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.then = {then}

    def forward(self, x):
        return self.then(self.first(x))


model = Net()
"""


def of_net(then: str, by: str = "self.scale") -> str:
    """A script that trains a network with a layer that partial makes."""
    return training().replace("model = nn.Linear(4, 3)\n", NET.format(then=then, by=by))


@pytest.mark.parametrize(
    "then",
    [
        "partial(F.leaky_relu, negative_slope=0.2)",
        "partial(nn.LayerNorm, eps=1e-6)(3)",
        "partial(Mixing, scale=0.5)(3)",
        "partial(F.layer_norm, normalized_shape=(3,))",
    ],
)
def test_what_leaves_samples_apart_is_divided(then: str) -> None:
    result = plain(of_net(then))
    assert not undivided(result) and "all_gather" not in result.code


@pytest.mark.parametrize(
    ("then", "by"),
    [
        ("partial(torch.softmax, dim=0)", ""),
        ("partial(F.normalize, dim=0)", ""),
        ("partial(torch.roll, shifts=1)", ""),
        ("partial(mixed, scale=2)", ""),
        ("partial(Mixing, scale=0.5)(3)", "h.mean(0)"),
    ],
)
def test_what_mixes_samples_is_seen(then: str, by: str) -> None:
    result = plain(of_net(then, by or "self.scale"))
    assert undivided(result) or "all_gather" in result.code  # the batch of all ranks is brought together there
