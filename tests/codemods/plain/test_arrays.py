"""Arrays of numpy that loops add up, and lists of arrays, are what they were after they were brought together."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import EVALUATION, plain, refusals
from tests.codemods.plain.test_numpy import TRAINING


@pytest.mark.parametrize(("made", "is_array"), [("np.zeros((3, 3))", True), ("[[0] * 3, [0] * 3, [0] * 3]", False)])
def test_an_array_that_a_loop_adds_up_is_one_after_it_too(made: str, is_array: bool) -> None:
    adds = "for t, p in zip(y.numpy(), model(x).argmax(1).numpy()):\n        table[t, p] += 1"
    source = TRAINING.replace("total = 0.0\n", f"total = 0.0\ntable = {made}\n")
    code = plain(source + EVALUATION.format(adds=adds, shown="table[0]")).code
    assert ("table = sum_over_ranks(table)" in code) is is_array
    assert ("if isinstance(value, np.ndarray):\n        return total.cpu().numpy()" in code) is is_array


@pytest.mark.parametrize("added", ["loss.detach().numpy()", "loss.cpu().data.numpy()", "loss.item()"])
@pytest.mark.parametrize("place", ["    print(np.mean(losses))\n", "        print(losses)\n"])
def test_a_list_of_arrays_of_no_dimension_is_one_of_numbers(added: str, place: str) -> None:
    """torch.as_tensor takes no list of arrays of no dimension: `len() of unsized object`."""
    source = TRAINING.replace("    for x", "    losses = []\n    for x") + f"        losses.append({added})\n{place}"
    result = plain(source)
    assert not refusals(result)
    given = "losses" if "item" in added else "[each.tolist() for each in losses]"
    assert f"mean_over_ranks({given})" in result.code


@pytest.mark.parametrize("given", ["[y]", "[y] if not isinstance(y, list) else y"])
@pytest.mark.parametrize("shown", ["print(y)", "torch.save(y, 'last.pt')"])
def test_an_array_of_no_dimension_that_a_function_puts_into_a_list(given: str, shown: str) -> None:
    source = TRAINING.replace("def accuracy", f"def show(y):\n    y = {given}\n    {shown}\n\n\ndef accuracy")
    result = plain(source + "        number = loss.detach().cpu().numpy()\n        show(number)\n        show(3.0)\n")
    assert not refusals(result)
    assert "mean_over_ranks([float(number) for number in y])" in result.code


def test_arrays_of_no_dimension_that_have_names_before_they_are_in_a_list() -> None:
    source = TRAINING.replace("    for x", "    losses = []\n    hits = []\n    for x")
    source += "        number = loss.detach().numpy()\n        losses.append(number)\n"
    source += "        right = (y == 0).sum().numpy()\n        hits.append(right)\n    print(losses, hits)\n"
    result = plain(source)
    assert not refusals(result)
    assert "losses = mean_over_ranks([float(number) for number in losses])" in result.code
    assert "hits = sum_over_ranks([each.tolist() for each in hits])" in result.code
