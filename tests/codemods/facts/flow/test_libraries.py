"""Functions of libraries: losses, reductions, what depends on the batch size."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.libraries import local_rows, local_rows_or_sizes
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided


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
    assert (undivided(TRAINING.replace("F.cross_entropy(model(x), y)", loss)) == []) is fine


@pytest.mark.parametrize(
    ("made", "fine"),
    [
        ("map(torch.autograd.Variable, (x, y))", True),
        ("map(lambda part: part.to('cpu'), (x, y))", True),
        ("map(lambda part: part.flip(0), [x, y])", False),
        ("map(torch.special.expit, (x, y))", False),
    ],
)
def test_what_map_makes_of_several_tensors(made: str, fine: bool) -> None:
    source = TRAINING.replace("        optimizer.zero", f"        x, y = {made}\n        optimizer.zero", 1)
    assert (reasons(source) == []) is fine


def test_an_array_that_is_the_same_on_all_ranks_is_so_as_a_tensor() -> None:
    source = "import numpy as np\n" + TRAINING.replace(
        "F.cross_entropy(model(x), y)", "F.cross_entropy(model(x) * torch.from_numpy(np.ones(3)).type_as(x).mean(), y)"
    )
    assert reasons(source) == []
