"""Which objects keep the last numbers that they get."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.flow.told import has_window

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("given", "keeps"), [("maxlen=20", True), ("[], 20", True), ("", False), ("[]", False), ("maxlen=size", True)]
)
def test_a_deque_that_forgets(given: str, keeps: bool) -> None:
    method = f"    def __init__(self, size):\n        self.last = deque({given})\n"
    script = script_of(f"from collections import deque\nclass Meter:\n{method}")
    (cls,) = script.find(ast.ClassDef)
    assert has_window(script, cls) is keeps


PROGRAM = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += value
        self.count += n
        self.avg = self.sum / self.count


torch.manual_seed(0)
data = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses, hits = Meter(), Meter()
for x, y in DataLoader(data, batch_size=8, shuffle=True, drop_last=True):
    out = model(x)
    loss = F.cross_entropy(out, y)
    losses.update(loss.item(), len(x))
    hits.update((out.argmax(1) == y).sum().item(), len(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(losses.avg, hits.avg)
"""


def test_a_meter_that_gets_means_and_sums_is_told_those_of_all_ranks() -> None:
    path = Path("train.py")
    code = convert({path: PROGRAM}, "cpu", style="plain")[path].code
    assert "losses.update(mean_over_ranks(loss.item()), len(x) * dist.get_world_size())" in code
    assert "hits.update(sum_over_ranks((out.argmax(1) == y).sum().item()), len(x) * dist.get_world_size())" in code
    assert "self.avg = self.sum / self.count\n" in code


def test_where_the_ranks_are_at_different_places_it_is_refused() -> None:
    path, old = Path("train.py"), "    losses.update(loss.item(), len(x))"
    source = PROGRAM.replace(old, "    for each in out:\n        losses.update(each.max().item())")
    assert old in PROGRAM and convert({path: source}, "cpu", style="plain")[path].code == source


def test_all_ranks_take_the_way_to_it() -> None:
    path = Path("train.py")
    source = PROGRAM.replace("    losses.update", "    if x.max() > 0.9:\n        losses.update")
    assert "if whole_batch(x).max() > 0.9:\n" in convert({path: source}, "cpu", style="plain")[path].code


def test_so_is_one_that_gets_a_number_that_all_ranks_have_beside_a_sum() -> None:
    path = Path("train.py")
    source = PROGRAM.replace("losses.update(loss.item()", "losses.update(out.std().item()")
    code = convert({path: source}, "cpu", style="plain")[path].code
    assert "losses.update(whole_batch(out).std().item(), len(x) * dist.get_world_size())" in code
    assert "hits.update(sum_over_ranks((out.argmax(1) == y).sum().item()), len(x) * dist.get_world_size())" in code


def test_a_mean_of_a_rank_by_a_count_of_all_is_told_and_sums_alone_are_not() -> None:
    path, old = Path("train.py"), "    hits.update((out.argmax(1) == y).sum().item(), len(x))"
    assert old in PROGRAM
    code = convert({path: PROGRAM.replace(old, "    hits.update(0.1, 12)")}, "cpu", style="plain")[path].code
    assert "losses.update(mean_over_ranks(loss.item()), len(x) * dist.get_world_size())" in code
    sums = PROGRAM.replace(old, "    hits.update(2, 12)").replace("loss.item()", "(out > 0).sum().item()")
    code = convert({path: sums}, "cpu", style="plain")[path].code
    assert "meter.avg = sum_over_ranks(self.sum) / sum_over_ranks(self.count)" in code


FORMATS = """
    def __str__(self):
        return "{avg:.3f}".format(**self.__dict__)

    def summary(self, text):
        return ("{sum:.3f}" if text == "sum" else "{count:.3f}").format(**self.__dict__)


torch.manual_seed"""
SHOWN = (
    PROGRAM.replace("self.sum += value\n", "self.sum += value * n\n")
    .replace("\n\ntorch.manual_seed", FORMATS, 1)
    .replace("hits = Meter(), Meter()", "hits, times = Meter(), Meter(), Meter()")
    .replace("    hits.update((out.argmax(1) == y).sum().item(), len(x))\n", "    times.update(0.5)\n")
    .replace("print(losses.avg, hits.avg)", "print(str(losses), losses.summary('count'), times)")
)


def test_a_meter_that_may_show_how_many_it_has_counted_is_told_those_of_all_ranks() -> None:
    """Others count 1 for each step, `update(time.time() - start)`: the method cannot know of which it is."""
    path = Path("train.py")
    assert FORMATS in SHOWN
    code = convert({path: SHOWN}, "cpu", style="plain")[path].code
    assert "losses.update(mean_over_ranks(loss.item()), len(x) * dist.get_world_size())" in code
    assert "times.update(0.5)\n" in code and "self.count += n\n" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    times.update(0.5)\n", "    for each in out:\n        times.update(each.max().item())\n"),
        ("    losses.update(loss.item(), len(x))\n", "    losses.update(loss.item(), [len(x), 1][y[0].item()])\n"),
        (
            "    losses.update(loss.item(), len(x))\n    times.update(0.5)\n",
            "    for meter, value, n in [(losses, loss.item(), len(x)), (times, 0.5, 1)]:\n"
            "        meter.update(value, n)\n",
        ),
        ("    times.update(0.5)\n", "    times.update(torch.rand(1).item(), len(x))\n    times.update(0.5, 2)\n"),
    ],
)
def test_a_meter_that_shows_counts_is_refused_where_the_call_cannot_tell(old: str, new: str) -> None:
    path = Path("train.py")
    assert old in SHOWN
    assert convert({path: SHOWN.replace(old, new)}, "cpu", style="plain")[path].code == SHOWN.replace(old, new)
