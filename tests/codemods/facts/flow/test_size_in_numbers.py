"""Where a program computes with the batch size."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import training

PATH = Path("train.py")
SOURCE = training(after="print(hits)\n")


def said(made: str, shown: str, per_process: bool = False, size: str = "size") -> list[str]:
    """What is said of numbers that are computed with the batch size; `made` stands above the loader."""
    source = SOURCE.replace("batch_size=8, shuffle", f"batch_size={size}, shuffle").replace("hits", shown)
    source = source.replace("train_loader =", f"{made}\ntrain_loader =", 1)
    found = convert({PATH: source}, "cpu", style="plain", per_process=per_process)[PATH].findings
    return [each.message for each in found if "computed with the batch size" in each.message]


@pytest.mark.parametrize("shown", ["3 / size", "3 / (2 * size)", "3 // int(size)", "100 % size", "size * 0.1"])
def test_numbers_that_are_computed_with_it(shown: str) -> None:
    [message] = said("size = 8", shown)
    assert "it is another one where W does not divide that" in message
    [message] = said("size = 8", shown, per_process=True)
    assert "W times too large" in message


@pytest.mark.parametrize("shown", ["size", "3 / 8", "3 / len(train_loader)", "3 / len(train_set)", "size + 1"])
def test_others(shown: str) -> None:
    assert said("size = 8", shown) == []


def test_an_option_and_what_a_loader_is_given() -> None:
    made = "class args:\n    size = 8\n"
    assert len(said(made, "3 / args.size", size="args.size")) == 1
    assert said(made, "args.size", size="args.size") == []
    assert said("size = 4", "3", size="2 * size") == []
