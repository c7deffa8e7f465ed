"""Metrics that sum over ranks by themselves, in the plain style: each sample counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import Accuracy, ConfusionMatrix, MetricCollection

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 5), torch.randint(3, (32,)))
loader, test = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
metric = {made}
for x, y in loader:
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {training}
with torch.no_grad():
    for x, y in test:
        {evaluation}
print(metric.compute())
"""


def script(training: str = "pass", evaluation: str = "pass", made: str = 'ConfusionMatrix("multiclass")') -> str:
    return SCRIPT.format(training=training, evaluation=evaluation, made=made)


@pytest.mark.parametrize("use", ["metric.update({out}, y)", "metric({out}, y)"])
@pytest.mark.parametrize("where", ["training", "evaluation"])
def test_what_is_given_the_samples_of_all_ranks_does_not_sum_over_ranks(use: str, where: str) -> None:
    before = script(**{where: use.format(out="out" if where == "training" else "model(x)")})
    result = plain(before)
    assert 'metric = ConfusionMatrix("multiclass", sync_on_compute=False)\n' in result.code
    path = Path("train.py")
    assert convert({path: result.code}, "none")[path].code == before


def test_each_one_of_a_collection_is_told() -> None:
    code = plain(script("metric.update(out, y)", made="MetricCollection([Accuracy(), ConfusionMatrix()])")).code
    assert "MetricCollection([Accuracy(sync_on_compute=False), ConfusionMatrix(sync_on_compute=False)])" in code


def test_what_keeps_a_ranks_samples_sums_over_ranks() -> None:
    result = plain(script("seen = metric(out, y)"))
    assert "sync_on_compute" not in result.code and "seen = metric(out, y)\n" in result.code


@pytest.mark.parametrize(
    "made", ["build()", "Accuracy() if len(data) else ConfusionMatrix()", "[each for each in [Accuracy()]][0]"]
)
def test_a_metric_is_known_by_where_it_comes_from(made: str) -> None:
    build = "def build():\n    return MetricCollection([Accuracy()])\n\n\n"
    text = script("seen = metric(out, y)", made=made).replace("torch.manual_seed", f"{build}torch.manual_seed", 1)
    assert "sync_on_compute" not in plain(text).code


def test_a_program_that_does_both_is_refused() -> None:
    (said,) = refusals(plain(script("seen = metric(out, y)", "metric.update(model(x), y)")))
    assert "`metric(out, y)` keeps a rank's samples" in said


@pytest.mark.parametrize(
    ("made", "said"),
    [("Mine()", "Mine sums over all processes"), ("monai.metrics.DiceMetric()", "`monai.metrics.DiceMetric` sums")],
)
def test_others_are_warned_of(made: str, said: str) -> None:
    head = "import monai\nimport torchmetrics\n\n\nclass Mine(torchmetrics.Metric):\n    pass\n\n\n"
    text = script("metric.update(out, y)", made=made)
    result = plain((head if made == "Mine()" else "import monai\n") + text)
    assert [each.severity for each in result.findings if said in each.message] == ["warning"]
