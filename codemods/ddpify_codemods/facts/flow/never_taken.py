"""Branches that a program never takes: conditions on arguments that every call of their function writes out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..script import Script
from .program import Program
from .signatures import argument

_PLAIN_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Constant, ast.cmpop, ast.boolop, ast.unaryop)


def never_taken(program: Program, script: Script, node: ast.AST) -> bool:
    """Whether something stands where a condition that is known never leads: `elif kind == "l2":`, of an argument that
    is "inf" in all calls of the function.

    A call that is not followed may give another one, so the function has to be named in its calls alone.
    """
    tests = (getattr(script.parents.get(each), "test", None) for each in _passed_by(program, script, node))
    return any(test is not None and _is_written_out(program, script, test) for test in tests)


def is_passed_by(program: Program, script: Script, node: ast.AST) -> bool:
    """Whether something stands where no condition leads, as far as these can be followed."""
    return any(True for _ in _passed_by(program, script, node))


def _passed_by(program: Program, script: Script, node: ast.AST) -> Iterator[ast.AST]:
    """The first statements and expressions around something that conditions lead past."""
    found = program.followed.found
    yield from (each for each in (node, *script.ancestors(node)) if each in found.passed_by - found.come_to)


def _is_written_out(program: Program, script: Script, test: ast.expr) -> bool:
    """Whether a condition asks for nothing but arguments that are constants in all calls of the function around it."""
    function = script.scope(test)
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    if function.name == "forward" or function.name.startswith("__"):  # which Python and torch call by no name
        return False
    parts = [each for each in ast.walk(test) if not isinstance(each, ast.expr_context)]
    asked = {each.id for each in parts if isinstance(each, ast.Name)}
    inside = [*ast.walk(function)]
    stored = {each.id for each in inside if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    bound = {each.name for each in inside if isinstance(each, ast.ExceptHandler | ast.FunctionDef | ast.ClassDef)}
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    calls = program.followed.found.called_with.get(function, set())
    return (
        all(isinstance(each, _PLAIN_TESTS) for each in parts)
        and asked <= {*parameters} - stored - bound
        and not any(isinstance(each, ast.Import | ast.ImportFrom | ast.Match | ast.Lambda) for each in inside)
        and {call for call, _ in calls} >= {*_namings(program, function.name)}
        and all(_gives_constants(function, call, asked) for call, _ in calls)
    )


def _namings(program: Program, name: str) -> Iterator[ast.AST]:
    """The calls of what has a name, and whatever else names it."""
    for script in program.scripts:
        for node in script.nodes:
            parent = script.parents.get(node)
            if isinstance(node, ast.Name | ast.Attribute) and name == getattr(node, "id", getattr(node, "attr", "")):
                yield parent if isinstance(parent, ast.Call) and parent.func is node else node
            text = node.value if isinstance(node, ast.Constant) else None  # getattr(module, name)
            if name in (text, node.name if isinstance(node, ast.alias) and node.asname else None):
                yield node


def _gives_constants(function: ast.FunctionDef, call: ast.Call, asked: set[str]) -> bool:
    """Whether a call writes out some arguments of a function, or leaves them to their defaults, which are written."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return False
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    of_words = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    defaults |= {each.arg: default for each, default in of_words if default is not None}
    return all(isinstance(argument(function, name, call) or defaults.get(name), ast.Constant) for name in asked)
