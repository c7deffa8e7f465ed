"""Calls of losses of which some weigh their classes, and others do not."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

CHOSEN = """\
criterion = nn.CrossEntropyLoss()
if len(__file__) > 3:
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0]))
"""
ASKED = '(mean_over_ranks(criterion.weight[y].sum()) if criterion.reduction == "sum" else 1)'


def test_a_loss_that_is_weighed_by_choice_is_divided_where_it_is_a_sum() -> None:
    code = plain(training(loss="criterion(model(x), y)").replace("total = 0.0\n", f"total = 0.0\n{CHOSEN}")).code
    assert f"criterion(ddp_model(x), y) / {ASKED}" in code
    assert 'weight=torch.tensor([1.0, 2.0, 5.0]), reduction="sum")' in code and "nn.CrossEntropyLoss()" in code


@pytest.mark.parametrize("line", ["criterion.reduction = 'none'", "print(criterion.reduction)"])
def test_whose_reduction_is_used_elsewhere_is_not_made_a_sum(line: str) -> None:
    source = training(loss="criterion(model(x), y)").replace("total = 0.0\n", f"total = 0.0\n{CHOSEN}{line}\n")
    result = plain(source)
    assert refusals(result) or 'reduction="sum"' not in result.code
