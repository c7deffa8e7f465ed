"""Lists with a number for each sample that comprehensions make of other such lists."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals

ADDS = "optimizer.step(); kept += out.sum(1).tolist(); labels.extend(y.tolist())"
BODY = LOOP.format(loss="F.cross_entropy(out := model(x), y)", step=ADDS)


def after_training(shown: str) -> str:
    result = plain(HEAD + "kept, labels, threshold = [], [], 0.5\n" + BODY + f"print({shown})\n")
    return "refused" if refusals(result) else result.code


@pytest.mark.parametrize(
    "shown",
    [
        "[1 if p > 0.5 else 0 for p in kept]",
        "[int(p > threshold) for p in kept]",
        "[p >= -threshold + 1 for p in kept]",
        "[round(p) for p in kept]",
        "[float(p) for p in kept]",
        "[1 if p > 0.5 and label == 1 else 0 for p, label in zip(kept, labels)]",
        "[True if p > 0.5 else p > 0 for p in kept]",
        "[-1 if p > 0.5 else int(p) for p in kept]",
    ],
)
def test_one_number_for_each_sample_is_brought_together(shown: str) -> None:
    assert f"print(whole_batch({shown}))" in after_training(shown)


@pytest.mark.parametrize(
    "shown",
    [
        "['yes' if p > 0.5 else 'no' for p in kept]",
        "[names[p] for p in labels]",
        "[label if p > 0.5 else -1.0 for p, label in zip(kept, labels)]",  # of one type on one rank alone
        "[True if p > 0.5 else 0 for p in kept]",
        "[p if p < 0.5 else 1 for p in kept]",
        "[p * 1.1 for p in kept]",  # a float of Python, which a tensor of a list would round
        "[0.1 if p > 0.5 else 0 for p in kept]",
        "[round(p, 2) for p in kept]",
        "[1 if p > max(kept) - 1 else 0 for p in kept]",
        "[1 if p > threshold else 0 for p in kept if p > 0]",
        "[1 if p > q else 0 for p in kept for q in labels]",
        "[(p, 1) for p in kept]",
        "[1 if p > 0.5 else 0 for p in kept[1:]]",
        "[labels.pop() if p > 0.5 else 0 for p in kept]",
        "[next(numbers) > p for p in kept]",
        "{1 if p > 0.5 else 0 for p in kept}",
        "[1 if p > labels[0] else 0 for p in kept]",
    ],
)
def test_other_entries_are_refused(shown: str) -> None:
    assert after_training(shown) == "refused"
