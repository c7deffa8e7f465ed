"""Losses that classes make for themselves, beside one that is divided by what all ranks' targets count for."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals, training, undivided

CLASS = """\
class TopK(nn.Module):
    def __init__(self, criterion=None):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss(reduction="none")

    def forward(self, out, y):
        return torch.topk(self.criterion(out, y), 2)[0]


"""
MADE = "criterion = nn.CrossEntropyLoss(ignore_index=1)\n"


def divided(before: str) -> bool:
    """Whether a loss with an ignored target is divided by what all ranks' targets count for."""
    result = plain(HEAD + before + LOOP.format(loss="criterion(model(x), y)", step="optimizer.step()"))
    found = refusals(result)
    assert not found or any("ignored targets" in each for each in found)
    return not found and "/ mean_over_ranks((y != criterion.ignore_index).sum())" in result.code


@pytest.mark.parametrize(
    "before",
    [
        CLASS + MADE,
        CLASS.replace('        self.criterion = nn.CrossEntropyLoss(reduction="none")\n', "") + MADE,
        "class Other:\n    def __init__(self, criterion):\n        self.criterion = criterion\n\n\n" + CLASS + MADE,
    ],
)
def test_a_class_that_has_its_own_loss_calls_no_other(before: str) -> None:
    assert divided(before)


@pytest.mark.parametrize(
    "before",
    [
        CLASS.replace('nn.CrossEntropyLoss(reduction="none")', "criterion") + MADE,
        CLASS.replace('nn.CrossEntropyLoss(reduction="none")', "nn.DataParallel(criterion)") + MADE,
        CLASS + "class Own(TopK):\n    pass\n\n\n" + MADE,
        "class Own(nn.Module):\n    pass\n\n\n" + CLASS.replace("(nn.Module)", "(Own)") + MADE,
        CLASS + MADE + "kept = TopK()\nkept.criterion = criterion\n",
        CLASS + MADE + "kept = TopK()\nsetattr(kept, 'criterion', criterion)\n",
        MADE + CLASS.replace("    def __init__", "    criterion = criterion\n\n    def __init__", 1),
    ],
)
def test_a_class_that_may_have_another_loss_too(before: str) -> None:
    assert not divided(before)


DERIVED = """\
class Loss(torch.nn.MSELoss):
    def forward(self, out, y):
        return super().forward(out, y)


"""


@pytest.mark.parametrize(
    ("change", "is_mean"),
    [
        (("", ""), True),
        (
            (
                "    def forward",
                "    def __init__(self):\n        super().__init__(reduction='sum')\n\n    def forward",
            ),
            False,
        ),
        (("        return", "        self.reduction = 'sum'\n        return"), False),
        (
            (
                "    def forward",
                "    reduction = property(lambda self: 'sum', lambda self, to: None)\n\n    def forward",
            ),
            False,
        ),
        (
            ("    def forward", "    @property\n    def reduction(self):\n        return 'sum'\n\n    def forward"),
            False,
        ),
        (("Loss()", "Loss(reduction='sum')"), False),
        (("loss = criterion", "criterion.reduction = 'sum'; loss = criterion"), False),
    ],
)
def test_a_loss_that_is_derived_from_one_of_torch(change: tuple[str, str], is_mean: bool) -> None:
    source = training("criterion(model(x), torch.zeros(len(x), 3))")
    source = source.replace("train_set =", DERIVED + "criterion = Loss()\ntrain_set =", 1).replace(*change)
    result = plain(source)
    assert (not undivided(result)) is is_mean
