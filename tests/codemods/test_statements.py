"""What an edit makes of one statement."""

from __future__ import annotations

import ast

import libcst as cst
from ddpify_codemods.rule import ChangeParameters, Delete, DropImport, GuardToFunction, Insert
from ddpify_codemods.statements import as_function, as_line, insertions, remaining, unguarded, with_parameters

PLACE = ast.parse("x = 1").body[0]


def source(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def test_parameters_come_and_go() -> None:
    function = cst.parse_statement("def f(a, b, c): pass")
    assert isinstance(function, cst.FunctionDef)
    at = ast.parse("def f(a, b, c): pass").body[0]
    assert isinstance(at, ast.FunctionDef)
    assert source(with_parameters(function, ChangeParameters(at, "", ("c",)))).startswith("def f(a, b):")
    assert source(with_parameters(function, ChangeParameters(at, "", ("a",), "index"))).startswith(
        "def f(index, b, c):"
    )


def test_a_guard_goes_or_becomes_a_function() -> None:
    guard, tree = cst.parse_statement("# why\nif main:\n    a()\n    b()\n"), ast.parse("if main:\n    a()")
    assert isinstance(guard, cst.If) and isinstance(tree.body[0], ast.If)
    statements, _ = unguarded(guard)
    assert [source(statement) for statement in statements] == ["# why\na()\n", "b()\n"]
    function = as_function(guard, GuardToFunction(tree.body[0], "main", "", ""))
    assert source(function) == "# why\ndef main(index):\n    a()\n    b()\n"


def test_what_is_left_of_an_import() -> None:
    line, at = cst.parse_statement("from a import b, c"), ast.parse("from a import b, c").body[0]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(at, ast.ImportFrom)
    left = remaining(line.body[0], [DropImport(at, "c", "")])
    assert left is not None and source(left) == "from a import b"
    assert remaining(line.body[0], [DropImport(at, "b", ""), DropImport(at, "c", "")]) is None
    assert remaining(line.body[0], [Delete(at, "")]) is None
    assert remaining(line.body[0], []) is line.body[0]


def test_insertions_in_their_order_and_parts_of_a_line() -> None:
    late, early, behind = Insert(PLACE, "2", "", last=True), Insert(PLACE, "1", ""), Insert(PLACE, "3", "", "after")
    assert insertions([late, early, behind], "before") == [early, late]
    line = cst.parse_statement("a(); b()  # both\n")
    assert isinstance(line, cst.SimpleStatementLine)
    assert source(as_line([line.body[0]], line, first=True, last=False)) == "a()\n"
    assert source(as_line([line.body[1]], line, first=False, last=True)) == "b()  # both\n"
