"""Whether a module is there in any case, or below a condition only."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from ddpify_codemods.facts.surely_bound import conditions, is_surely_bound

from tests.codemods.checks import script_of


def is_bound(lines: str, code: str = "aux") -> bool:
    """Whether the last module of this name that gives its parameters is there at the last statement."""
    script = script_of(lines)
    read = [node.value for node in script.find(ast.Attribute) if node.attr == "parameters"]
    at = [node for node in script.find(ast.Assign) if ast.unparse(node).startswith("o = ")][-1]
    return is_surely_bound(script, next(each for each in read[::-1] if ast.unparse(each) == code), at)


TAKEN = "\nif x:\n    p += aux.parameters()\no = SGD(p)"


@pytest.mark.parametrize(
    ("made", "surely"),
    [
        ("", True),
        ("aux = Net()", True),
        ("from net import aux", True),
        ("with torch.device('meta'):\n    aux = Net()", True),
        ("for aux in nets:\n    pass", True),
        ("try:\n    aux = Net()\nexcept OSError:\n    raise", True),
        ("if x:\n    aux = Net()", False),
        ("aux = None\nif x:\n    aux = Net()", False),
        ("aux = Net() if x else None", False),
        ("aux: Net | None = None\nif x:\n    aux = Net()", False),
        ("if x:\n    aux = A()\nelse:\n    aux = B()", True),
        ("if x:\n    aux = A()\nelse:\n    raise ValueError", True),
        ("if x:\n    aux = A()\nelif y:\n    aux = B()", False),
        ("if x:\n    a, aux = A(), B()\nelse:\n    a, aux = B(), None", True),
        ("if x:\n    aux = A()\nelse:\n    sys.exit('no')", True),
        ("if x:\n    aux = A()\nelif y:\n    aux = B()\naux.to(device)", True),
        ("if x:\n    aux = A()\nelif y:\n    aux = B()\nz = aux(1)", True),
        ("if x:\n    aux = A()\nz = aux(1) if x else 0\nkeep(aux)", False),
        ("def f():\n    if x:\n        aux = A()", True),
        ("match x:\n    case 1:\n        aux = A()\n    case _:\n        pass", False),
    ],
)
def test_ways_to_make_a_module(made: str, surely: bool) -> None:
    assert is_bound(made + TAKEN) is surely


@pytest.mark.parametrize(
    ("given", "surely"), [("aux", True), ("aux=None", False), ("aux=net", True), ("*, aux=None", False)]
)
def test_a_parameter_may_be_none(given: str, surely: bool) -> None:
    assert is_bound(f"def f({given}):\n" + indent(TAKEN, "    ")) is surely


def test_a_parameter_may_be_replaced() -> None:
    assert is_bound("def f(aux=None):\n    aux = aux or Net()\n" + indent(TAKEN, "    "))


@pytest.mark.parametrize(
    ("test", "surely"),
    [("x", True), ("aux is not None", False), ("aux", False), ("x and aux", False), ("x and aux is not None", False),
     ("isinstance(aux, Net)", True), ("aux.frozen is not None", True)],
)  # fmt: skip
def test_a_script_that_asks_is_not_sure(test: str, surely: bool) -> None:
    assert is_bound(f"aux = make()\nif {test}:\n    p += aux.parameters()\no = SGD(p)") is surely


OBJECT = """
class A:
    def __init__(self):
        self.nets = {{"a": Net()}}
        {}
    def g(self):
        if x:
            p = self.aux.parameters()
            q = self.nets["b"].parameters()
        o = SGD(p)

class B:
    def __init__(self):
        self.aux = Net()
"""


@pytest.mark.parametrize(
    ("made", "surely"),
    [("pass", True), ("self.aux = Net()", True), ("self.aux = None", False), ("if x: self.aux = Net()", False)],
)
def test_an_attribute_of_another_method(made: str, surely: bool) -> None:
    assert is_bound(OBJECT.format(made), "self.aux") is surely


def test_an_entry_of_a_dictionary() -> None:
    assert not is_bound(OBJECT.format("if x: self.nets['b'] = Net()"), "self.nets['b']")
    assert is_bound(OBJECT.format("self.nets['b'] = Net()"), "self.nets['b']")


def test_the_branch_of_the_statement_is_taken() -> None:
    assert is_bound("if x:\n    aux = Net()\n    if y:\n        p = aux.parameters()\n    o = SGD(p)")


def test_conditions_that_are_not_around_both() -> None:
    script = script_of("if x:\n    if y:\n        p += aux.parameters() if z else []\n    o = SGD(p)")
    read = next(node for node in script.find(ast.Name) if node.id == "aux")
    at = next(node for node in script.find(ast.Assign))
    assert [ast.unparse(each.test) for each in conditions(script, read, at)] == ["z", "y"]  # type: ignore[union-attr]
