"""A generator and the loop over it take turns."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from ddpify_codemods.facts.flow.generators import yields_in_loops

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import TRAINING, followed

LOOP = "    for x, y in train_loader:\n"
GENERATOR = "def batches(loader):\n    for batch in loader:\n        yield batch\n"


def test_both_loops_run_over_the_batches_of_training() -> None:
    found = followed(GENERATOR + TRAINING.replace(LOOP, "    for x, y in batches(train_loader):\n"))
    assert found.problems == ()
    over = {ast.unparse(loop.iter): loaders for loop, loaders in found.found.loops.items() if isinstance(loop, ast.For)}
    assert over["loader"] == over["batches(train_loader)"]
    assert {found.status[each] for each in over["loader"]} == {"training"}
    (passed,) = found.found.passes
    assert isinstance(passed.epochs, ast.For) and ast.unparse(passed.epochs.iter) == "range(2)"


def test_a_generator_that_gets_no_loader_is_followed_where_it_is_called() -> None:
    generator = "def numbers(n):\n    for i in range(n):\n        yield i\n"
    found = followed(generator + TRAINING + "for i in numbers(3):\n    print(i)\n")
    assert found.problems == ()


@pytest.mark.parametrize(
    ("body", "can_be"),
    [
        ("for x in xs:\n        yield x", True),
        ("while xs:\n        yield xs.pop()", True),
        ("yield xs", False),
        ("for x in xs:\n        yield x\n    yield None", False),
        ("for x in xs:\n        answer = yield x", False),
        ("yield from xs", False),
        ("return xs", False),
    ],
)
def test_yields_in_loops(body: str, can_be: bool) -> None:
    script = script_of(f"def f(xs):\n    {body}\n")
    assert yields_in_loops(script, script.tree.body[0]) is can_be


def test_a_program_that_is_too_large_is_so_in_a_loop_over_a_generator_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left there is left in order."""
    source = GENERATOR + TRAINING.replace(LOOP, "    for x, y in batches(train_loader):\n")
    monkeypatch.setattr("ddpify_codemods.facts.flow.state._LIMIT", 30)
    reasons = {problem.reason for problem in followed(f"def main():\n{indent(source, '    ')}main()\n").problems}
    assert reasons == {"the program is too large to be followed"}
