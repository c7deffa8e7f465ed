"""Calls that a conversion has made too long for a line."""

from __future__ import annotations

from ddpify_codemods.layout import joined, laid_out

SAMPLER = "sampler=DistributedSampler(data, shuffle=True)"
LONG = f"loader = DataLoader(data, {SAMPLER}, num_workers={'4' * 36}, pin_memory=True)\n"
BROKEN = f"""\
loader = DataLoader(
    data,
    sampler=DistributedSampler(data, shuffle=True),
    num_workers={"4" * 36},
    pin_memory=True,
)
"""


def test_a_long_call_has_an_argument_on_each_line() -> None:
    assert laid_out("", LONG, ["DataLoader"]) == BROKEN
    assert laid_out("", LONG, ["other"]) == LONG


def test_lines_of_the_author_stay_as_they_are() -> None:
    assert laid_out(LONG, LONG + "x = 1\n", ["DataLoader"]) == LONG + "x = 1\n"
    assert joined(BROKEN, BROKEN, ["DataLoader"]) == BROKEN


def test_a_call_that_fits_again_is_on_one_line() -> None:
    assert joined("", "loader = DataLoader(\n    data,\n    shuffle=True,\n)\n", ["DataLoader"]) == (
        "loader = DataLoader(data, shuffle=True)\n"
    )


def test_a_call_within_an_f_string_stays_on_its_line() -> None:
    """No line may end there before Python 3.12."""
    text = 'print(f"{accuracy(DataLoader(' + "a_long_name, " * 9 + 'sampler=1)):.3f}")\n'
    assert laid_out("", text, {"DataLoader"}) == text
    assert laid_out("", text.replace('f"{', "(").replace(':.3f}"', ")"), {"DataLoader"}).count("\n") > 1
