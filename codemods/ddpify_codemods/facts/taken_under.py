"""Conditions under which alone a variable has a value, and is used: `if train: params += mask.parameters()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .made_under import is_none, is_of_itself, lasts, tests_around
from .script import Script


def taken_under(script: Script, taken: ast.expr, at: ast.stmt) -> Sequence[ast.expr]:
    """The tests that have held where a variable is used and, as far as the file says, wherever it gets a value, but
    may not hold where a statement begins.

    Args: the file, the variable where it is used, the statement. What a base class gives the variable does not matter:
    where a test does not hold, it is not used.
    """
    held = {*map(ast.unparse, tests_around(script, at))}
    tests = {code: test for test in tests_around(script, taken) if (code := ast.unparse(test)) not in held}
    if not tests or script.scope(taken) is not script.scope(at):
        return ()
    known = {*_asked_for(taken), *_tests_of_all(script, taken)}
    return [test for code, test in reversed(tests.items()) if code in known]


def condition_again(script: Script, tests: Sequence[ast.expr], at: ast.stmt) -> str:
    """Some tests as one that can be asked at a statement, with the same answer; "" where one cannot."""
    if not tests or not all(lasts(script, test, test, at) for test in tests):
        return ""
    return ast.unparse(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), [*tests]))


def _asked_for(taken: ast.expr) -> Iterator[str]:
    """The tests whether a variable has a value."""
    code = ast.unparse(taken)
    yield from (code, f"{code} is not None")
    if isinstance(taken, ast.Attribute):
        yield f"hasattr({ast.unparse(taken.value)}, {taken.attr!r})"


def _tests_of_all(script: Script, taken: ast.expr) -> frozenset[str]:
    """The tests that have held wherever a variable gets a value that is not None."""
    code = ast.unparse(taken)
    around = {taken, *script.ancestors(taken)}
    stores = (each for each in script.find(ast.Name, ast.Attribute, ast.Subscript) if isinstance(each.ctx, ast.Store))
    found = [
        frozenset(map(ast.unparse, _tests_of(script, each)))
        for each in stores
        if ast.unparse(each) == code and _owner(script, each) in around
        if not is_none(script.statement(each)) and not is_of_itself(script, each, code)
    ]
    return frozenset.intersection(*found) if found else frozenset()


def _owner(script: Script, store: ast.expr) -> ast.AST:
    """What a variable belongs to: the class whose attribute it is, the function or the file of a name."""
    if isinstance(store, ast.Name):
        return script.scope(store)
    return next((each for each in script.ancestors(store) if isinstance(each, ast.ClassDef)), script.tree)


def _tests_of(script: Script, store: ast.expr) -> Iterator[ast.expr]:
    """The tests that have held where a variable gets its value, as in `mask = Net() if train else None`."""
    value = getattr(script.statement(store), "value", None)
    yield from tests_around(script, store)
    if isinstance(value, ast.IfExp):
        ways = [
            each for each in (value.body, value.orelse) if not (isinstance(each, ast.Constant) and each.value is None)
        ]
        if len(ways) == 1:
            yield from tests_around(script, ways[0])
