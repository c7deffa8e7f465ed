"""Where a value comes from."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.origins import origins, origins_beyond, passed, sources

from tests.codemods.checks import script_of, sources_of


@pytest.mark.parametrize(
    ("lines", "origin"),
    [
        ("a = make()\nx = a", "make()"),
        ("def f():\n    return make()\nx = f()", "make()"),
        (
            "class A:\n    def __init__(self):\n        self.a = make()\n"
            "    def run(self):\n        x = self.a\n        use(x)",
            "make()",
        ),
        ("for x in make():\n    pass", "make()"),
    ],
)
def test_a_value_is_followed_to_its_origin(lines: str, origin: str) -> None:
    script = script_of(f"{lines}\nprint(x)" if "class" not in lines else lines)
    use = [node for node in script.find(ast.Name) if node.id == "x" and isinstance(node.ctx, ast.Load)][-1]
    assert origin in sources_of(origins(script, use))


def test_a_constant_comes_from_nowhere() -> None:
    script = script_of("x = 3")
    value = script.tree.body[0].value  # type: ignore[attr-defined]
    assert sources(script, value) == [] and list(origins(script, value)) == [value]


def test_what_callers_hand_over() -> None:
    script = script_of("def f(a, b=0):\n    pass\nf(1, 2)\nf(b=3, a=4)")
    function = next(script.find(ast.FunctionDef))
    assert {"2", "3"} <= set(sources_of(passed(script, function, "b")))
    assert sources_of(passed(script, function, "a")) == ["1", "4"]


def test_a_name_that_is_assigned_often_is_followed_once_through_each() -> None:
    """Ten times `x = f(x)` are 10 ** 8 ways of eight steps: a public script took three minutes."""
    script = script_of("def f(x):\n    return x\nx = make()\n" + "x = f(x)\n" * 10 + "print(x)")
    use = [node for node in script.find(ast.Name) if node.id == "x" and isinstance(node.ctx, ast.Load)][-1]
    found = list(origins(script, use))
    assert len(found) == len(set(found)) < len(list(ast.walk(script.tree)))
    assert "make()" in sources_of(found)


def test_what_something_is_a_part_of_is_followed_too() -> None:
    script = script_of("root = make()\nfile = root / 'a'\nprint(file)")
    use = [node for node in script.find(ast.Name) if node.id == "file" and isinstance(node.ctx, ast.Load)][-1]
    found = origins_beyond(script, use, lambda node: [node.left] if isinstance(node, ast.BinOp) else [])
    assert sources_of(found) == ["file", "root / 'a'", "root", "make()"]
