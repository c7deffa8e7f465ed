"""Meters that evaluations update, in the plain style: a rank updates them with its part, and all are read together."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals

METER = """\
class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0, 0, 0
    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
"""
TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
EVALUATION = """\
losses = Meter()
for x, y in test_loader:
    losses.update(F.cross_entropy(model(x), y).item(){})
print({})
"""


@pytest.mark.parametrize(
    ("given", "sampler"),
    [
        (", len(x)", "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())"),
        ("", "sampler=[i for i in range(len(test_set)) if i // 8 % dist.get_world_size() == dist.get_rank()]"),
    ],
)
def test_an_evaluation_whose_meter_is_read_after_it_is_divided(given: str, sampler: str) -> None:
    result = plain(HEAD + METER + TRAINING + EVALUATION.format(given, "losses.avg"))
    assert not refusals(result) and sampler in result.code
    assert "print(losses.over_ranks().avg)" in result.code


@pytest.mark.parametrize("shown", ["vars(losses)", "losses.avg, losses.__dict__"])
def test_an_evaluation_whose_meter_is_shown_as_it_is_stays_whole(shown: str) -> None:
    result = plain(HEAD + METER + TRAINING + EVALUATION.format(", len(x)", shown))
    assert not refusals(result) and "len(test_set)" not in result.code and "def over_ranks" not in result.code


def test_a_meter_that_is_shown_in_an_evaluation_keeps_it_whole() -> None:
    source = EVALUATION.format(", len(x)", "losses.avg").replace("\nprint", "\n    print")
    result = plain(HEAD + METER + TRAINING + source)
    assert not refusals(result) and "len(test_set)" not in result.code and "over_ranks" not in result.code


def test_numbers_of_all_ranks_beside_those_of_one_are_not_summed() -> None:
    updated = TRAINING + "        losses.update(loss.item(), len(x))\n"
    shown = "def shown():\n    return losses.avg, losses.sum\n\n\nprint(shown())\n"
    assert refusals(plain(HEAD + METER + "losses = Meter()\n" + updated + shown))
