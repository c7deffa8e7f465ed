"""Samplers that draw some samples more than once, or by weights, and that only loaders draw from."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.drawing_samplers import changed_in_place, drawing_sampler, draws_without_end

from tests.codemods.checks import script_of

SCRIPT = """\
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler

def loaders(data, weights):
    sampler = WeightedRandomSampler(weights, 40)
    print(len(sampler))
    return DataLoader(data, batch_size=8, sampler=sampler)
"""


def of_script(text: str) -> str:
    script = script_of(text)
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader")
    found = drawing_sampler(script, call)
    return "" if found is None else ast.unparse(found)


def test_one_with_a_name() -> None:
    assert of_script(SCRIPT) == "sampler"


@pytest.mark.parametrize("made", ["RandomSampler(data, num_samples=9)", "WeightedRandomSampler(weights, 9, False)"])
def test_one_without(made: str) -> None:
    assert of_script(SCRIPT.replace("sampler=sampler", f"sampler={made}")) == made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print(len(sampler))", "sampler.weights = data"),
        ("print(len(sampler))", "print(list(sampler))"),
        ("sampler = Weighted", "sampler = made(sampler) or Weighted"),
        ("sampler = Weighted", "sampler = None\n    if weights: sampler = Weighted"),
        ("data, weights", "data, weights, sampler"),
        ("sampler=sampler)", "sampler=sampler, **options)"),
        ("sampler=sampler", "sampler=RandomSampler(data)"),  # of a known kind: each once
        ("import DataLoader", "import WeightedRandomSampler as DataLoader"),
    ],
)
def test_another_one(before: str, after: str) -> None:
    assert before in SCRIPT
    changed = SCRIPT.replace(before, after, 1 if "import" in before or "Weighted" in before else -1)
    assert of_script(changed) in ("", "sampler" if "import" in before else "")


@pytest.mark.parametrize("change", ["weights[0] = 2", "weights *= 2", "weights.mul_(2)", "data.weights[0] = 2"])
def test_weights_that_change_while_it_draws(change: str) -> None:
    text = (
        SCRIPT.replace("WeightedRandomSampler(weights", "WeightedRandomSampler(data.weights")
        if "." in change
        else SCRIPT
    )
    for where, found in ((f"{text}    {change}\n", True), (f"{text}\ndef later(data, weights):\n    {change}\n", True)):
        script = script_of(where)
        call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader")
        sampler = drawing_sampler(script, call)
        assert sampler is not None
        assert (changed_in_place([script], script, sampler) is not None) is found


def test_weights_that_are_ready_before() -> None:
    script = script_of(SCRIPT.replace("    sampler =", "    weights[0] = 2\n    sampler ="))
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader")
    sampler = drawing_sampler(script, call)
    assert sampler is not None and changed_in_place([script], script, sampler) is None


@pytest.mark.parametrize(
    ("options", "found"),
    [("dict(num_workers=2)", "sampler"), ("{'pin_memory': True} if weights else {}", "sampler"), ("weights.more", "")],
)
def test_options_beside_it(options: str, found: str) -> None:
    text = SCRIPT.replace("print(len(sampler))", f"options = {options}")
    assert of_script(text.replace("sampler=sampler)", "sampler=sampler, **options)")) == found


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("RandomSampler(data, replacement=True, num_samples=int(1e10))", True),
        ("RandomSampler(data, True, 10_000_000_000)", True),
        ("RandomSampler(data, replacement=True, num_samples=4096)", False),
    ],
)
def test_more_samples_than_a_list_can_hold(made: str, found: bool) -> None:
    script = script_of(SCRIPT.replace("sampler=sampler", f"sampler={made}"))
    sampler = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "RandomSampler")
    assert draws_without_end(script, sampler) is found
