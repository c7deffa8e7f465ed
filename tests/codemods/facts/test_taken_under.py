"""The conditions under which alone a variable is used, and has a value."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from ddpify_codemods.facts.taken_under import condition_again, taken_under

from tests.codemods.checks import node_of, script_of

TAKES = "if {}:\n    params += mask.parameters()\n"


def conditions(before: str, code: str = "mask", at: str = "end = 1") -> tuple[str, str]:
    """The tests, and what they are when they are asked at a statement."""
    script = script_of(f"{before}\nend = 1\n")
    taken = node_of(script, f"{code}.parameters()").func.value
    statement = next(each for each in script.find(ast.stmt) if ast.unparse(each) == at)
    tests = taken_under(script, taken, statement)
    return ", ".join(map(ast.unparse, tests)), condition_again(script, tests, statement)


@pytest.mark.parametrize(
    ("before", "test", "expected"),
    [
        ("if a:\n    mask = Net()\n", "a", "a"),
        ("if a and b:\n    mask = Net()\n", "a", "a"),
        ("if a:\n    mask = Net()\n", "a and b", "a"),
        ("if a:\n    mask = Net()\n", "b", ""),
        ("mask = Net()\n", "a", ""),
        ("mask = Net() if a else None\n", "a", "a"),
        ("mask = None if a else Net()\n", "not a", "not a"),
        ("mask = Net() if a else Other()\n", "a", ""),
        ("mask = None\nif a:\n    mask = Net()\n    mask = mask.cuda()\n", "a", "a"),
        ("if a:\n    mask = Net()\nelse:\n    mask = Other()\n", "a", ""),
        ("mask = build()\n", "mask is not None", "mask is not None"),
        ("mask = build()\n", "mask", "mask"),
    ],
)
def test_what_both_have_in_common(before: str, test: str, expected: str) -> None:
    assert conditions(before + TAKES.format(test)) == (expected, expected)


def test_several() -> None:
    before = "if a and b:\n    mask = Net()\nif a:\n" + indent(TAKES.format("b"), "    ")
    assert conditions(before) == ("a, b", "a and b")
    assert conditions(before + "if a:\n    given = 1\n", at="given = 1") == ("b", "b")


def test_in_an_expression() -> None:
    before = "mask = Net() if a else None\nparams = mask.parameters() if a else []"
    assert conditions(before) == ("a", "a")


@pytest.mark.parametrize(("test", "after"), [("asks()", ""), ("a", "a = False")])
def test_what_is_not_asked_again(test: str, after: str) -> None:
    assert conditions(f"if {test}:\n    mask = Net()\n" + TAKES.format(test) + after) == (test, "")


def test_attributes_of_a_class_with_a_base() -> None:
    other = "class Other:\n    def make(self):\n        self.mask = Net()\n"
    body = "if a:\n    self.mask = Net()\nif a:\n    params += self.mask.parameters()\ngiven = 1"
    own = "class Own(Base):\n    def make(self):\n" + indent(body, "        ")
    assert conditions(other + own, "self.mask", "given = 1") == ("a", "a")
    asks = own.replace("if a:\n            params", "if hasattr(self, 'mask'):\n            params")
    assert conditions(asks, "self.mask", "given = 1") == ("hasattr(self, 'mask')", "")


def test_another_function() -> None:
    assert conditions("def make():\n    if mask:\n        mask.parameters()\n") == ("", "")
