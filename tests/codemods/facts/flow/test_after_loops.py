"""What loops leave behind."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.after_loops import is_of_last_turn, left_by, needs_a_turn

from tests.codemods.checks import script_of

LOOP = "total = 0\nfor x in loader:\n    y = x\n    total += y\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (LOOP, ""),
        (LOOP + "print(total)\n", ""),
        (LOOP + "print(x)\n", "x"),
        (LOOP + "print(total, y)\n", "y"),
        ("y = 0\n" + LOOP + "print(y)\n", ""),
        (LOOP + "for x in loader:\n    print(x)\n", ""),
        (LOOP + "for z in loader:\n    print(y)\n", "y"),
        (LOOP + "def f(y):\n    print(y)\n", ""),
    ],
)
def test_names_that_only_the_turns_of_a_loop_give_a_value(source: str, name: str) -> None:
    script = script_of(source)
    loop = next(node for node in script.tree.body if isinstance(node, ast.For))
    assert left_by(script, loop) == name


def test_a_comprehension_leaves_nothing() -> None:
    script = script_of("y = [x for x in loader]\nprint(x)\n")
    assert left_by(script, next(node for node in script.nodes if isinstance(node, ast.comprehension))) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("total += y", False),
        ("total = total + y", False),
        ("total = y", True),
        ("total = 0\n    total += y", True),
        ("total, n = y, 1", True),
        ("totals.append(y)", False),
    ],
)
def test_values_of_the_last_turn(body: str, expected: bool) -> None:
    script = script_of(f"for y in loader:\n    {body}\n")
    assert is_of_last_turn(script, script.tree.body[0], "total") is expected


@pytest.mark.parametrize(
    ("begins", "adds", "after", "expected"),
    [
        ("n = 0.0", "n += torch.sum(out == y)", "n.double() / 2", True),
        ("n = 0", "n += torch.sum(out == y)", "n.double() / 2", True),
        ("n = 0", "n += torch.sum(out == y)", "n / 2", False),
        ("n = m = 0", "n += out.eq(y).sum()", "float(n)", False),
        ("n = 0.0", "n += (out == y).sum()", "n / 2", True),
        ("n, m = 0, 0", "n += loss * len(y)", "n / 2", True),
        ("n, m = 0, 0", "n = n + loss", "n / 2", True),
        ("n = torch.zeros(1)", "n += loss", "n.item()", False),
        ("n = 1.5\nn = torch.zeros(1)", "n += loss", "n.item()", False),
    ],
)
def test_a_number_that_the_first_turn_makes_a_tensor(begins: str, adds: str, after: str, expected: bool) -> None:
    script = script_of(f"import torch\n{begins}\nfor out, y in loader:\n    {adds}\nprint({after})\n")
    loop = next(node for node in script.tree.body if isinstance(node, ast.For))
    assert needs_a_turn(script, loop, "n") is expected
