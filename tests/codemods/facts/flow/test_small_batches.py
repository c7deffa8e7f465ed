"""Batch sizes that ranks may not be able to divide: what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ddpify_codemods import Result, convert

from tests.codemods.plain.test_followed import refusals, training

OPTIONS = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default={})
args = parser.parse_args()
"""


def divided(size: str, head: str = "", **options: Any) -> Result:
    """What becomes of a training with a batch size."""
    path = Path("train.py")
    source = head + training().replace("batch_size=8, shuffle", f"batch_size={size}, shuffle", 1)
    return convert({path: source}, "cpu", style="plain", **options)[path]


def small(result: Result) -> list[str]:
    """What is said of the batch size."""
    return [each.message for each in result.findings if "the batch size is" in each.message]


@pytest.mark.parametrize(
    ("size", "head", "says"),
    [
        ("args.batch_size", OPTIONS.format(1), "1 where `--batch-size` is not given, which two ranks or more"),
        ("args.batch_size", OPTIONS.format(4), "4 where `--batch-size` is not given: with W larger than that"),
        ("7", "", "7: with W larger than that"),
        ("SIZE", "SIZE = 2\n", "2: with W larger than that"),
    ],
)
def test_a_batch_that_may_be_too_small_is_said(size: str, head: str, says: str) -> None:
    result = divided(size, head)
    [said] = small(result)
    assert says in said and not refusals(result)


NOT_GIVEN = OPTIONS.format(None) + "args.ids = [0]\nif args.batch_size is None:\n    args.batch_size = {}\n"


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ("4 * len(args.ids)", "4, by `4 * len(args.ids)` with one of these, where `--batch-size` is not given: with W"),
        ("4", "4 where `--batch-size` is not given: with W"),
        ("4 * torch.cuda.device_count()", ""),
        ("64 * len(args.ids)", ""),
        ("4 + len(args.ids)", ""),
    ],
)
def test_what_a_batch_size_becomes_that_is_not_given(size: str, says: str) -> None:
    said = small(divided("args.batch_size", "import torch\n" + NOT_GIVEN.format(size)))
    assert len(said) == bool(says) and says in "".join(said)


@pytest.mark.parametrize(
    ("default", "said"),
    [("default=None", True), ("help='how many'", True), ("default=64", False), ("default=N", False)],
)
def test_a_batch_size_is_not_given_where_its_option_has_no_default(default: str, said: bool) -> None:
    """As `if not args.batch_size:` behind `default=64`, which no command comes to but one that gives 0."""
    head = (
        "N = 2 * 32\n" + OPTIONS.replace("default={}", default) + "if not args.batch_size:\n    args.batch_size = 4\n"
    )
    assert bool(small(divided("args.batch_size", head))) is said


def test_what_a_batch_size_becomes_that_is_no_option() -> None:
    own = "class Settings:\n    size = None\n    ids = [0]\n\n\nown = Settings()\n"
    [said] = small(divided("own.size", own + "if own.size is None:\n    own.size = 4 * len(own.ids)\n"))
    assert "4, by `4 * len(own.ids)` with one of these: with W" in said


ONE = "    return DataLoader(train_set, batch_size=size, shuffle=True)"
EACH = '    return {each: DataLoader(train_set, batch_size=size, shuffle=True) for each in ["train"]}["train"]'
LATER = "    own = size\n    return DataLoader(train_set, batch_size=own, shuffle=True)"


@pytest.mark.parametrize("made", [ONE, EACH, LATER])
@pytest.mark.parametrize("given", ["args.batch_size", "number"])
def test_the_option_is_found_whose_default_a_function_is_given(made: str, given: str) -> None:
    head = f"from torch.utils.data import DataLoader\n{OPTIONS.format(2)}number = args.batch_size\n"
    source = training().replace("DataLoader(train_set, batch_size=8, shuffle=True)", f"load({given})", 1)
    assert f"load({given})" in source
    source = f"{head}{source}".replace("train_loader =", f"def load(size):\n{made}\n\n\ntrain_loader =", 1)
    result = convert({Path("train.py"): source}, "cpu", style="plain")[Path("train.py")]
    assert not refusals(result)
    [said] = small(result)
    assert "2 where `--batch-size` is not given: with W" in said


@pytest.mark.parametrize(("size", "head"), [("8", ""), ("args.batch_size", OPTIONS.format(64)), ("SIZE", "")])
def test_a_batch_that_is_large_or_not_known(size: str, head: str) -> None:
    assert not small(divided(size, head))


@pytest.mark.parametrize(("size", "head"), [("1", ""), ("SIZE", "SIZE = 1\n")])
def test_a_batch_of_one_sample(size: str, head: str) -> None:
    result = divided(size, head)
    assert refusals(result) == ["a batch of one sample cannot be divided over ranks"]
    assert not small(result)
    result = divided(size, head, per_process=True)
    assert f"batch_size={size}," in result.code and not refusals(result)
    assert not [each for each in small(result) if "is that of each process" not in each]


def test_the_options_of_a_file_that_is_imported_do_not_count() -> None:
    other = OPTIONS.format(2).replace("parser = ", "def main():\n    parser = ").replace("\nargs", "\n    args")
    other = other.replace("\nparser.add", "\n    parser.add") + "    return args\n"
    source = OPTIONS.format(64) + "import other\n" + training().replace("=8, shuffle", "=args.batch_size, shuffle", 1)
    files = {Path("train.py"): source, Path("other.py"): other}
    assert not small(convert(files, "cpu", style="plain")[Path("train.py")])
