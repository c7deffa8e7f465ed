"""Metrics of a library, by where they are made and by the names that they go by."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.sync_metrics import calls_of_metrics, derives_from_metric, makes_metric

from tests.codemods.checks import script_of

HEAD = "import torchmetrics\nfrom torchmetrics import Accuracy, MetricCollection\n"
OBJECT = """
class T:
    def __init__(self, m):
        self.m = m
    def f(self):
        return self.m(x, y)
T(m=Accuracy())
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("Accuracy()", True),
        ("torchmetrics.classification.MulticlassAccuracy(3)", True),
        ("MetricCollection([a, b])", False),
        ("torchmetrics.functional.accuracy(x, y)", False),
        ("MeanMetric()", False),
    ],
)
def test_a_metric_is_known_by_its_library(made: str, expected: bool) -> None:
    script = script_of(HEAD + f"metric = {made}\n")
    assert makes_metric(script, next(script.find(ast.Call))) is expected


def test_a_class_may_derive_from_one() -> None:
    script = script_of(HEAD + "class Mine(torchmetrics.Metric): pass\nclass Other(Base): pass\n")
    assert [derives_from_metric(script, each) for each in script.find(ast.ClassDef)] == [True, False]


@pytest.mark.parametrize(
    ("use", "calls", "others"),
    [
        ("acc = Accuracy().to(device)\nvalue = acc(x, y)", ["acc(x, y)"], False),
        ("acc = Accuracy()\nacc(x, y)", [], True),
        ("acc = Accuracy()\nacc.update(x, y)\nprint(acc.compute())", [], True),
        ("seen = {'a': Accuracy()}\nprint(seen['a'](x, y))\nlogs.update(a=1)", ["seen['a'](x, y)"], False),
        ("for name, m in zip(names, [Accuracy()]):\n    v = m(x, y)", ["m(x, y)"], False),
        ("def f(m):\n    return m(x, y)\nf(Accuracy())", ["m(x, y)"], False),
        (OBJECT, ["self.m(x, y)"], False),
        ("loss = criterion(x, y)\nacc = Accuracy()", [], False),
    ],
)
def test_what_is_called_under_whichever_name(use: str, calls: list[str], others: bool) -> None:
    found, updated = calls_of_metrics((script_of(HEAD + use),))
    assert ([ast.unparse(call) for call in found], updated) == (calls, others)
