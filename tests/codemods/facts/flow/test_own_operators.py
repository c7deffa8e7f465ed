"""Objects of the program that are added, counted and run over by methods of their own hold what their methods give."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, plain, refusals

METER = """\
class Meter:
    def __init__(self, hits=0, n=0):
        self.hits, self.n = hits, n
    def __add__(self, other):
        return Meter(self.hits + other.hits, self.n + other.n)
class Log:
    def __init__(self):
        self.values = []
    def __len__(self):
        return len(self.values)
    def __float__(self):
        return sum(self.values) / 64
    def __iter__(self):
        return iter(self.values)
meter, log = Meter(), Log()
"""
TRAINING = LOOP.format(loss=CE, step="optimizer.step(); {adds}")
HITS = "(model(x).argmax(1) == y).sum().item()"


def converted(adds: str, shown: str) -> str:
    result = plain(HEAD + METER + TRAINING.format(adds=adds) + f"print({shown})\n")
    return "refused" if refusals(result) else result.code


@pytest.mark.parametrize("adds", [f"meter = meter + Meter({HITS}, len(x))", f"meter += Meter({HITS}, len(x))"])
def test_a_sum_of_objects_is_brought_together(adds: str) -> None:
    code = converted(adds, "meter.hits / meter.n")
    assert code == "refused" or "_over_ranks(meter" in code
    assert "print(meter.hits / meter.n)" not in code


def test_its_length_is_that_of_what_it_counts() -> None:
    code = converted("log.values.extend(y.tolist())", "len(log)")
    assert "return len(whole_batch(self.values))" in code


def test_its_value_is_that_of_what_it_adds_up() -> None:
    code = converted(f"log.values.append({HITS})", "float(log)")
    assert code == "refused" or "sum_over_ranks(" in code


@pytest.mark.parametrize("function", ["sum", "list", "max", "sorted"])
def test_what_runs_over_it_gets_the_numbers_of_a_rank(function: str) -> None:
    assert converted(f"log.values.append({HITS})", f"{function}(log)") == "refused"
    assert converted("log.values.append(1)", f"{function}(log)") != "refused"


@pytest.mark.parametrize(
    "adds",
    [
        "counts.update(zip(y.tolist(), model(x).argmax(1).tolist()))",
        "rows.writerows(zip(y.tolist(), model(x).argmax(1).tolist()))",
        "kept = [*kept, *zip(y.tolist(), model(x).argmax(1).tolist())]",
    ],
)
def test_what_is_run_over_holds_the_samples_of_a_rank(adds: str) -> None:
    """`zip` of lists that each rank has others of is no more the same than these."""
    before = (
        "import collections, csv\ncounts, kept = collections.Counter(), []\nrows = csv.writer(open('rows.csv', 'w'))\n"
    )
    result = plain(
        HEAD
        + before
        + LOOP.format(loss=CE, step="optimizer.step()")
        + EVALUATION.format(adds=adds, shown="counts, kept")
    )
    assert refusals(result) or "sampler=range" not in result.code
