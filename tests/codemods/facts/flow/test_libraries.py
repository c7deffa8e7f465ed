"""Functions of libraries: losses, reductions, what depends on the batch size."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.libraries import local_rows, local_rows_or_sizes
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons


def test_values_of_a_ranks_rows() -> None:
    assert local_rows([Value("rows"), Value("same")]) and not local_rows([Value("sum")])
    assert local_rows_or_sizes([Value("rows"), Value("size")])


@pytest.mark.parametrize(
    ("loss", "fine"),
    [
        ("F.cross_entropy(model(x), y)", True),
        ("F.mse_loss(model(x), x[:, :3])", True),
        ("torch.cdist(model(x), model(x)).mean()", False),
    ],
)
def test_losses_over_samples_and_over_pairs_of_them(loss: str, fine: bool) -> None:
    assert (reasons(TRAINING.replace("F.cross_entropy(model(x), y)", loss)) == []) is fine
