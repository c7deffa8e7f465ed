"""What names and attributes are made of."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.bindings import arguments, attribute_bindings, bindings, names_in

from tests.codemods.checks import node_of, script_of, sources_of


def test_a_name_is_what_is_assigned_appended_or_looped_over() -> None:
    script = script_of("""
        nets = [first()]
        nets.append(second())
        for net in nets: pass
        x, y = 1, 2
    """)
    made = {name: sources_of(values) for name, values in bindings(script, script.tree).items()}
    assert made["nets"] == ["[first()]", "second()"]
    assert made["net"] == ["nets"]
    assert made["x"] == ["1"] and made["y"] == ["2"]


def test_attributes_go_by_their_source() -> None:
    script = script_of("class A:\n    def __init__(self):\n        self.params = [1]\n        self.params += [2]")
    assert "[1]" in sources_of(attribute_bindings(script)["self.params"])


def test_the_names_of_a_function_are_its_own() -> None:
    script = script_of("x = 1\ndef f(a, *, b=0):\n    x = a")
    function = next(script.find(ast.FunctionDef))
    assert sources_of(bindings(script, function)["x"]) == ["a"]
    assert arguments(function) == {"a", "b"}
    assert arguments(script.tree) == frozenset()


def test_every_name_of_an_expression_is_found() -> None:
    assert names_in(node_of(script_of("y = a.b + c[d]"), "a.b + c[d]")) == {"a", "c", "d"}
