"""What became of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods.result import ConversionBug, Result, in_turn, original_lines, raise_unless_compiled, unchanged
from ddpify_codemods.rule import Change

PATH = Path("train.py")


def test_nothing_to_do() -> None:
    (result,) = unchanged({PATH: "x = 1\n"}, "it trains nothing").values()
    assert (result.code, result.reason, result.changes) == ("x = 1\n", "it trains nothing", ())


def test_what_python_takes_no_more_is_a_bug() -> None:
    late = "import os\nfrom __future__ import annotations\n"  # which the parser takes
    raise_unless_compiled(PATH, "x = 1\n", "x = '\\d'\n")
    raise_unless_compiled(PATH, "return 1\n", late)  # neither is ours
    with pytest.raises(ConversionBug, match=r"train.py: the converted file does not compile: .* \(line 2\)"):
        raise_unless_compiled(PATH, "x = 1\n", late)


def test_lines_are_those_of_the_original() -> None:
    line = original_lines("a\nb\nc\n", "new\na\nb\nchanged\n")
    assert (line(2), line(3)) == (1, 2)


def test_one_conversion_after_another() -> None:
    before = {PATH: "a\nb\n"}
    first = {PATH: Result("new\na\nb\n", (Change("DDP001", 1, "put before"),))}
    second = {PATH: Result("new\na\nB\n", (Change("DDP002", 3, "made large"),))}
    result = in_turn(before, first, second)[PATH]
    assert result.code == "new\na\nB\n"
    assert sorted((change.rule, change.line) for change in result.changes) == [("DDP001", 1), ("DDP002", 2)]
