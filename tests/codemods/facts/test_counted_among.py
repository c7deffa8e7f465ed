"""A sum that is 0 wherever a count is, and what may leave it something where nothing is counted."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.counted_among import counted_among

from ..checks import node_of, script_of

METER = """\
class Meter:
    def __init__(self):
        self.hits = self.count = 0

    def reset(self):
        self.hits = 0
        self.count = 0

    def update(self, loss, out, y, ignored=0):
        mask = y != ignored
        hit = (out == y) & mask
        self.hits += {part}
        self.count += {count}

    def rate(self):
        return hits(self.hits) / max(total(self.count), 1)
"""
MASKED = METER.format(part="hit.sum().item()", count="mask.sum().item()")


def _counted(source: str, *others: str) -> bool:
    script = script_of(source)
    part, count = node_of(script, "hits(self.hits)").args[0], node_of(script, "total(self.count)").args[0]
    return counted_among([script, *map(script_of, others)], script, part, count)


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("hit.sum().item()", "mask.sum().item()"),
        ("((out == y) & mask).sum()", "mask.sum()"),
        ("(mask & (out == y)).sum()", "mask.sum()"),
        ("(out == y)[mask].sum().item()", "mask.sum().item()"),
        ("(out == y).sum().item()", "y.size(0)"),
        ("out.eq(y).float().sum().item()", "len(y)"),
        ("((out == y) | ~mask).all(dim=1).sum().item()", "y.shape[0]"),
        ("loss.item() * y.size(0)", "y.size(0)"),
    ],
)
def test_a_sum_of_what_is_counted(part: str, count: str) -> None:
    assert _counted(METER.format(part=part, count=count))


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("(out == y).sum().item()", "mask.sum().item()"),
        ("((out == y) & ~mask).sum()", "mask.sum()"),
        ("((out == y) | mask).sum()", "mask.sum()"),
        ("loss.item()", "y.size(0)"),
        ("loss.item() * y.size(1)", "y.size(0)"),
        ("loss.item() * ignored", "ignored"),
        ("(out == y).all().sum()", "y.size(0)"),
        ("(out == y).all(dim=0).sum()", "y.size(0)"),
        ("(out == out).sum()", "y.size(0)"),
        ("(out == y).sum(0)", "y.size(0)"),
        ("(out == y)[mask].sum()", "y[mask].size(0)"),
        ("hit.sum()", "mask.sum() - 1"),
        ("hit.sum()", "hit.sum()"),
    ],
)
def test_a_sum_of_something_else(part: str, count: str) -> None:
    assert not _counted(METER.format(part=part, count=count))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("        self.hits = 0\n", ""),
        ("        self.hits = 0\n", "        if self.count:\n            self.hits = 0\n"),
        ("        self.hits = 0\n", "        self.hits = 1\n"),
        ("        self.count += ", "        if len(y) < 4:\n            return\n        self.count += "),
        ("        self.count += ", "        if ignored:\n            self.count += "),
        ("        self.count += ", "        self.count -= "),
        ("        mask = y != ignored\n", "        mask = (y - ignored).float()\n"),
        ("        mask = y != ignored\n", "        mask = y != ignored\n        mask[0] = True\n"),
        ("        self.hits += ", "        mask.logical_not_()\n        self.hits += "),
        ("        self.hits += ", "        hit[0] = True\n        self.hits += "),
        ("        self.hits += ", "        mask = y == 1\n        self.hits += "),
        ("    def rate", "    def more(self):\n        self.hits += 1\n\n    def rate"),
        ("    def rate", "    def load(self, state):\n        self.__dict__.update(state)\n\n    def rate"),
        ("    def rate", "    def put(self, name):\n        setattr(self, name, 1)\n\n    def rate"),
    ],
)
def test_something_may_be_left_where_nothing_is_counted(here: str, there: str) -> None:
    assert here in MASKED and _counted(MASKED)
    assert not _counted(MASKED.replace(here, there, 1))


def test_another_file_may_set_it() -> None:
    assert _counted(MASKED, "meter.other = 3\nsetattr(model, 'size', 3)\n")
    assert not _counted(MASKED, "meter.hits = 3\n")
    assert not _counted(MASKED, "setattr(meter, name, 3)\n")


def test_numbers_that_no_object_of_a_class_keeps() -> None:
    assert not _counted("hits(self.hits) / max(total(self.count), 1)\n")
