"""verify can fail: conversions as people write them, each wrong in one way, are found out and named."""

from __future__ import annotations

import re

import pytest

from ddpify.verify import verdict
from ddpify.verify.command import CouldNotRun
from ddpify.verify.traces import distance
from tests.ddpify.verify import mistakes, naive
from tests.ddpify.verify.mistakes import CASES
from tests.ddpify.verify.naive import Case
from tests.test_hazards import IDS, ROOT
from tests.turns import in_turn


@pytest.mark.parametrize("name", in_turn(((name,) for name in CASES), 6))
def test_mistake_is_found_and_named(name: str) -> None:
    """A third of them at every change; all by night."""
    case = CASES[name]
    try:
        found = naive.verify(case)
    except CouldNotRun as error:
        assert case.code == 2, error.lines
        named = re.findall(r"^likely (.+?):", "\n".join(error.lines), re.MULTILINE)
    else:
        assert case.code == 1
        assert found.differences, "taken for equal"
        named = [str(difference.hazard).partition(":")[0] for difference in found.differences]
    assert named, "no hazard is named"
    assert case.hazards[0] in named[0].split(" or "), named
    assert set(case.hazards) <= {hazard for each in named for hazard in each.split(" or ")}, named


EXACT = {
    "whole": Case((), {"share": ""}),
    "divided": Case(()),
    "a stream, divided": Case(
        (),
        {
            "share": "",
            "sets": mistakes.STREAM["sets"].replace("iter(data)", "(data[i] for i in range(rank, 40, world))"),
            "loader": "DataLoader(stream, 4)",
        },
        mistakes.STREAM,
    ),
    "in memory": Case((), {}, {"loader": "None", "batches": "(data[i : i + 8] for i in range(0, 40, 8))"}),
    "columns of a text": Case(
        (),
        {
            "epoch": "state = (torch.zeros(1, 4, 5), torch.zeros(1, 4, 5))",
            "share": "x, y = x[:, rank::world], y[:, rank::world]",
        },
        mistakes.TEXT,
    ),
    "an accumulation": Case(
        (),
        {
            "share": "i, (x, y) = x, y\n" + naive.BY_HAND["share"],
            "step": "with contextlib.nullcontext() if i % 2 or i == 4 else model.no_sync():\n"
            "    F.cross_entropy(model(x), y).backward()\n" + mistakes.WINDOW,
        },
        mistakes.ACCUMULATED,
    ),
    "a loss with a gradient penalty, clipped": Case(
        (),
        original={
            "step": mistakes.SLOPE
            + "(F.cross_entropy(out, y) + slope.square().sum(1).mean()).backward()\n"
            + mistakes.CLIP
        },
    ),
    "closures": Case((), original=mistakes.SEARCH | {"optimizer": naive.PLAIN["optimizer"]}),
}


SEARCHED = Case(
    (),
    {"step": mistakes.SEARCH["step"].replace("return loss", mistakes.MEAN)},
    mistakes.SEARCH | {"loader": "DataLoader(data, batch_size=20)"},
)


@pytest.mark.parametrize("name", EXACT)
def test_exact_conversion_is_equal(name: str) -> None:
    found = naive.verify(EXACT[name])
    assert not found.differences
    assert max(found.parameters) <= 1e-6


def test_noise_is_in_the_gradients_that_a_closure_computes() -> None:
    source = naive.text(naive.PLAIN, SEARCHED.original)
    original, control = (naive.run_original(source, SEARCHED.pretend, noise) for noise in (0.0, verdict.NOISE))
    assert distance(control.steps()[0].grads, original.steps()[0].grads) >= verdict.NOISE / 2


DEEP = """\
import torch
from torch import nn

torch.manual_seed(0)
layers = [part for _ in range(16) for part in (nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())]
model = nn.Sequential(nn.Conv2d(3, 8, 3), *layers, nn.Flatten(), nn.LazyLinear(2))
x, y = torch.rand(16, 3, 10, 10), torch.arange(16) % 2
model(x)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
nn.functional.cross_entropy(model(x), y).backward()
optimizer.step()
"""


def test_noise_is_in_the_first_weights_so_that_the_first_gradient_of_a_deep_network_shows_it() -> None:
    original, control = (naive.run_original(DEEP, "", noise).steps()[0] for noise in (0.0, verdict.NOISE))
    assert distance(control.grads, original.grads) >= 10 * verdict.NOISE
    assert distance(control.params, original.params) <= verdict.TOLERANCE


def test_rounding_that_a_line_search_amplifies_is_rounding() -> None:
    found = naive.verify(SEARCHED)
    assert not found.differences
    assert max(found.parameters) <= 1e-3


def test_every_hazard_is_a_mistake_here_or_documented() -> None:
    """docs/verify.md says of each row that has no case why not."""
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    shown = {hazard for case in CASES.values() for hazard in case.hazards}
    rows = re.findall(r"^\| ((?:[DLMSEIPX]\d+ ?)+) \|", page, re.MULTILINE)
    explained = [hazard for row in rows for hazard in row.split()]
    assert sorted(explained) == sorted(set(IDS) - shown)
    listed = re.search(r"each with one mistake that people make:\n(.*?)\. Every one", page, re.DOTALL)
    assert listed
    assert re.findall(r"[DLMSEIPX]\d+", listed[1]) == [hazard for hazard in IDS if hazard in shown]
