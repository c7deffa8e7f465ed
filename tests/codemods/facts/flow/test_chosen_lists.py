"""Lists of which samples choose the one that gets an entry: no rank may take its own for that of all."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, plain, refusals

LISTS = "by_class = {0: [], 1: [], 2: []}\n"
CHOSEN = [
    "by_class[y[0].item()].append(1.0)",
    "by_class[int(y[0])].extend([1.0, 2.0])",
    "by_class[int(model(x).argmax(1)[0])].append(1.0)",
]


@pytest.mark.parametrize("adds", CHOSEN)
@pytest.mark.parametrize("shown", ["len(by_class[0])", "sum(by_class[1])", "by_class"])
def test_an_evaluation_that_fills_one_of_several_lists_is_not_divided(adds: str, shown: str) -> None:
    result = plain(HEAD + LISTS + EVALUATION.format(adds=adds, shown=shown) + LOOP.format(loss=CE, step="pass"))
    assert "test_loader = DataLoader(test_set, batch_size=8)" in result.code


@pytest.mark.parametrize("adds", CHOSEN)
def test_training_chooses_by_the_first_sample_of_all(adds: str) -> None:
    step = f"optimizer.step(); {adds}"
    result = plain(HEAD + LISTS + LOOP.format(loss=CE, step=step) + "print(sum(by_class[0]))\n")
    assert refusals(result) or "whole_batch(" in result.code


@pytest.mark.parametrize("adds", CHOSEN)
def test_training_does_not_choose_by_each_sample(adds: str) -> None:
    step = f"optimizer.step()\n        for i in range(len(y)):\n            {adds.replace('[0]', '[i]')}"
    assert refusals(plain(HEAD + LISTS + LOOP.format(loss=CE, step=step) + "print(sum(by_class[0]))\n"))


def test_a_list_that_all_ranks_choose_has_the_entries_of_all() -> None:
    step = "optimizer.step(); by_class[epoch].append(loss.item())"
    result = plain(HEAD + LISTS + LOOP.format(loss=CE, step=step) + "print(by_class[0][-1])\n")
    assert not refusals(result) and "mean_over_ranks" in result.code
