"""A sum over a batch that is divided by another one: the sums of all ranks divide, or it is refused (L3)."""

from __future__ import annotations

import pytest

from .test_followed import EVALUATION, plain, refusals, training, undivided

EACH = 'F.cross_entropy(model(x), y, reduction="none")'
MASKED = f"({EACH} * (y > 0)).sum() / (y > 0).sum()"


@pytest.mark.parametrize(
    ("divisor", "written"),
    [
        ("(y > 0).sum()", "mean_over_ranks((y > 0).sum())"),
        ("(y > 0).float().sum()", "mean_over_ranks((y > 0).float().sum())"),
        ("torch.sum(y > 0)", "mean_over_ranks(torch.sum(y > 0))"),
        ("x[y > 0].detach().sum()", "mean_over_ranks(x[y > 0].detach().sum())"),
    ],
)
def test_a_mean_over_a_mask_is_divided_by_the_masks_of_all_ranks(divisor: str, written: str) -> None:
    result = plain(training(f"({EACH} * (y > 0)).sum() / {divisor}"))
    assert not refusals(result) and f" * (y > 0)).sum() / {written}\n" in result.code


@pytest.mark.parametrize(
    "loss",
    [
        f"{EACH}.sum() / model(x).exp().sum()",
        f"{EACH}.sum() / (model.weight.sum() * (y > 0).sum())",
        f"{EACH}.sum() / (scale * (y > 0).sum())",
        f"{EACH}.sum() / ((y > 0).sum() + 1)",
        f"{EACH}.sum() / (y > 0).sum().clamp(min=1)",
        f"{EACH}.sum() / (y > 0).sum() ** 2",
        f"({EACH} / (y > 0).sum()).sum()",
        f"sum({EACH}[i] / y.sum() for i in range(len(x)))",
    ],
)
def test_other_divisors_are_refused(loss: str) -> None:
    made = "weight = nn.Parameter(torch.ones(3))\nscale = weight.sum()\n"
    assert undivided(plain(training(loss).replace("total = 0.0", made + "total = 0.0")))


def test_an_evaluation_that_divides_so_is_whole() -> None:
    """All ranks have to come there equally often, even if what is divided is not read."""
    function = f"def masked(x, y):\n    return {MASKED}\n\n\n"
    adds = "loss = masked(x, y)\n    total += (y == 1).sum().item()"
    source = training("masked(x, y)", after=EVALUATION.format(adds=adds, shown="total"))
    result = plain(source.replace("total = 0.0", function + "total = 0.0"))
    assert not refusals(result) and "test_loader = DataLoader(test_set, batch_size=8)\n" in result.code
