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


DROPPING = HEAD.replace("import DataLoader", "import DataLoader, Dataset").replace(
    "model = nn.Linear(4, 3)", "model = nn.Sequential(nn.Dropout(0.1), nn.Linear(4, 3))"
)
NOISY = """\
class Noisy(Dataset):
    def __len__(self):
        return 30
    def __getitem__(self, index):
        return torch.randn(4), index % 3
test_loader = DataLoader(Noisy(), batch_size=8)
"""


@pytest.mark.parametrize("shown", ["losses.avg", "'%.3f' % losses.avg", "'{m.avg:.3f}'.format(m=losses)"])
def test_a_meter_of_samples_that_each_rank_draws_is_read_as_it_is(shown: str) -> None:
    """Beside numbers of rank 0 alone, the mean of as many evaluations as there are ranks is none of either."""
    updated = "seen = Meter()\n" + TRAINING + "        seen.update(loss.item(), len(x))\nprint(seen.avg)\n"
    decides = "if losses.avg < 1:\n    optimizer.param_groups[0]['lr'] = 0.01\n"
    source = DROPPING + METER + updated + NOISY + EVALUATION.format(", len(x)", shown)
    source = source.replace("\nprint(" + shown, "\n    print(" + shown) + decides  # in the loop: it stays whole
    result = plain(source)
    assert not refusals(result) and "print(seen.over_ranks().avg)" in result.code
    assert f"print({shown})" in result.code and "if from_rank_0(bool(losses.avg < 1)):" in result.code


def test_a_meter_that_is_read_in_one_place_with_that_of_training_is_brought_together() -> None:
    show = "def show(meter):\n    print(meter.avg)\n"
    updated = "seen = Meter()\n" + TRAINING + "        seen.update(loss.item(), len(x))\nshow(seen)\n"
    source = DROPPING + METER + show + updated + NOISY + EVALUATION.format(", len(x)", "1") + "show(losses)\n"
    source = source.replace("\nprint(1", "\n    print(losses.avg")
    assert "print(meter.over_ranks().avg)" in plain(source).code


def test_a_text_of_what_each_rank_draws_decides_nothing() -> None:
    text = "text = '{m.avg:.3f}'.format(m=losses)\nif text > '1':\n    optimizer.param_groups[0]['lr'] = 0.01\n"
    source = DROPPING + METER + TRAINING + NOISY + EVALUATION.format(", len(x)", "losses.avg") + text
    assert refusals(plain(source.replace("\nprint(losses", "\n    print(losses")))


def test_a_text_that_shows_a_property_is_refused() -> None:
    meter = METER.replace(", self.avg = 0, 0, 0", " = 0, 0").replace("        self.avg = self.sum / self.count\n", "")
    meter += "    @property\n    def mean(self):\n        return self.sum / self.count\n"
    updated = "seen = Meter()\n" + TRAINING + "        seen.update(loss.item())\n"
    shown = "print('{m.mean:.3f}'.format(m=seen))\n"
    assert not refusals(plain(HEAD + meter + updated + "print(seen.mean)\n"))
    assert refusals(plain(HEAD + meter + updated + "print(seen.mean)\n" + shown))


MONITOR = """\
from collections import defaultdict


class Monitor:
    def __init__(self):
        self.metrics = defaultdict(lambda: {"val": 0, "count": 0, "avg": 0})
    def update(self, name, val, n=1):
        metric = self.metrics[name]
        metric["val"] += val
        metric["count"] += n
        metric["avg"] = metric["val"] / metric["count"]
    def __str__(self):
        return " ".join("{} {:.4f}".format(name, metric["avg"]) for name, metric in self.metrics.items())


monitor, tested = Monitor(), Monitor()
"""
UPDATED = """\
for x, y in test_loader:
    tested.update("loss", F.cross_entropy(model(x), y).item()){shown}
print(tested)
"""


@pytest.mark.parametrize("shown", ["", "\n    print(tested)"])
def test_what_a_meter_asks_for_in_training_it_does_not_ask_for_in_uneven_evaluations(shown: str) -> None:
    """A rank with a batch more than others would wait for them in `update` for ever."""
    updated = TRAINING + "        monitor.update('loss', loss.item())\n    print(monitor)\n"
    result = plain(HEAD + MONITOR + updated + UPDATED.format(shown=shown))
    assert not refusals(result) and "len(test_set)" not in result.code
    assert 'mean_over_ranks(metric["avg"])' in result.code and "every rank evaluates all of it" in str(result.findings)


def test_a_sum_of_this_rank_that_is_one_of_all_samples_in_a_whole_evaluation_is_refused() -> None:
    counted = MONITOR.replace('/ metric["count"]', '/ (metric["count"] + 1)')
    updated = TRAINING + "        monitor.update('hits', (model(x).argmax(1) == y).sum().item(), len(x))\n"
    evaluated = UPDATED.format(shown="").replace("F.cross_entropy(model(x), y)", "(model(x).argmax(1) == y).sum()")
    assert refusals(plain(HEAD + counted + updated + evaluated.replace("item()", "item(), len(x)")))


def test_dicts_that_a_defaultdict_makes_keep_the_number_of_a_rank_beside_another_one_s() -> None:
    """One dict stands for all of them: what another key gets does not take the place of what one has."""
    updated = TRAINING + "        monitor.metrics['a']['val'] += loss.item()\nmonitor.metrics['b']['val'] = 0\n"
    shown = "if monitor.metrics['a']['val'] < 1:\n    optimizer.param_groups[0]['lr'] = 0.01\n"
    result = plain(HEAD + MONITOR + updated + shown)
    assert refusals(result) or "mean_over_ranks(monitor.metrics['a']['val'])" in result.code


def test_a_function_that_shows_a_number_of_training_is_called_in_an_evaluation_by_all_ranks_equally_often() -> None:
    shows = "def show(value):\n    print(value)\n"
    evaluated = "for x, y in test_loader:\n    show(F.cross_entropy(model(x), y).item())\n"
    result = plain(HEAD + shows + TRAINING + "        show(loss.item())\n" + evaluated)
    assert not refusals(result) and "len(test_set)" not in result.code


@pytest.mark.parametrize(
    "shown", ['"{:d} {}".format(epoch, monitor)', '"{m!s}".format(m=monitor)', "text.format(monitor)"]
)
def test_what_a_text_shows_of_an_object_is_that_of_all_ranks(shown: str) -> None:
    updated = TRAINING + "        monitor.update('loss', loss.item())\n    text = sys.argv[1]\n    print({})\n"
    result = plain("import sys\n" + HEAD + MONITOR + updated.replace("{}", shown))
    assert not refusals(result) and 'mean_over_ranks(metric["avg"])' in result.code


def test_an_object_of_which_a_text_shows_an_attribute_shows_nothing_else() -> None:
    updated = TRAINING + "        monitor.update('loss', loss.item())\n    print('{0.name}'.format(monitor))\n"
    result = plain(HEAD + MONITOR.replace("    def update", "        self.name = 'a'\n    def update", 1) + updated)
    assert not refusals(result) and "over_ranks" not in result.code
