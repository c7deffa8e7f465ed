"""Lists of which each entry is a number of its own."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals

COUNTS = "        counts[0] += loss.item()\n        counts[1] += (model(x).argmax(1) == y).sum().item()\n"
SHOWN = "print(counts[0] / 8, counts[1])\n"


def converted(beside: str, begins: str = "counts = [0, 0]\n") -> str:
    """What becomes of a mean and a sum in the entries of a list, with a statement behind the loop."""
    result = plain(HEAD + begins + LOOP.format(loss=CE, step="optimizer.step()") + COUNTS + beside + SHOWN)
    return "" if refusals(result) else result.code


def test_entries_that_are_taken_by_their_places_are_numbers_of_their_own() -> None:
    assert "print(mean_over_ranks(counts[0] / 8), sum_over_ranks(counts[1]))" in converted("")


@pytest.mark.parametrize(
    "beside",
    [
        "counts.reverse()\n",
        "counts.insert(0, 1)\n",
        "del counts[0]\n",
        "counts[-1] = 0\n",
        "counts[0:0] = [1]\n",
        "others = counts\nothers.reverse()\n",
        "counts[0], counts[True] = counts[1], counts[0]\n",
        "counts += [1]\n",
        "def turn():\n    counts.reverse()\nturn()\n",
        "for place in range(2):\n    counts[place] /= 2\n",
        "sorted(counts)\n",
        "(lambda: counts.pop(0))()\n",
        "counts = [1, *counts]\n",
    ],
)
def test_entries_that_may_have_other_places_are_not(beside: str) -> None:
    assert "sum_over_ranks" not in converted(beside)


@pytest.mark.parametrize("begins", ["counts = kept = [0, 0]\n", "counts = [0, 0, 0]\ncounts = [0, 0]\n"])
def test_a_list_that_has_two_names_or_lengths(begins: str) -> None:
    assert "sum_over_ranks" not in converted("", begins)


def test_a_list_of_a_class() -> None:
    source = HEAD + "class Log:\n    counts = [0, 0]\ncounts = Log.counts\n"
    source += LOOP.format(loss=CE, step="optimizer.step()") + COUNTS + "Log.counts.reverse()\n" + SHOWN
    assert refusals(plain(source))


def test_a_list_that_a_function_within_changes() -> None:
    loop = "".join(f"    {line}\n" for line in (LOOP.format(loss=CE, step="optimizer.step()") + COUNTS).splitlines())
    begins = "def main():\n    counts = [0, 0]\n    def turn():\n        CHANGES\n"
    source = f"{begins}{loop}    turn()\n    {SHOWN}main()\n"
    assert refusals(plain(HEAD + source.replace("CHANGES", "counts.reverse()")))
    assert not refusals(plain(HEAD + source.replace("CHANGES", "print(counts[0])")))
