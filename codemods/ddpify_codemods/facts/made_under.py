"""Variables that a condition alone gives a value: `if args.mask: mask = Net()`, with nothing of that name before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .all_ways import ways
from .bindings import arguments
from .script import Script

_VARIABLES = (ast.Name, ast.Attribute, ast.Subscript)
# What a test is made of that says the same when it is asked again.
_LASTING = (*_VARIABLES, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Tuple, ast.List)
_OPERATORS = (ast.expr_context, ast.cmpop, ast.boolop, ast.Not)


def made_under(script: Script, code: str, at: ast.stmt) -> str:
    """The condition under which a variable has a value where a statement begins.

    Args: the file, the source of the variable ("mask", "self.nets['mask']"), the statement.
    Returns: the condition, as it can be asked there once more; "" where the variable has a value in any case, where
    the statement stands under the condition itself, or where it cannot be told.
    """
    stores = [each for each in _stores(script, code, at) if not _is_of_itself(script, each, code)]
    if not all(script.scope(each) is script.scope(at) and each.lineno < at.lineno for each in stores):
        return ""
    tests = []
    for maker, stored in _makers(script, stores, at).items():
        test = _test(script, maker, stored, at)
        if not test:
            return ""
        tests.append(test)
    return "" if set(tests) & set(_tests_around(script, at)) else " or ".join(dict.fromkeys(tests))


def _stores(script: Script, code: str, at: ast.stmt) -> Sequence[ast.expr]:
    """Where a variable gets a value that is not None."""
    scope = script.scope(at)
    if code.isidentifier():
        is_shared = any(code in each.names for each in script.find(ast.Global, ast.Nonlocal))
        found: Sequence[ast.expr] = (
            [] if is_shared or code in arguments(scope) else script.stores.get((scope, code), [])
        )
    else:
        stored = (each for each in script.find(*_VARIABLES) if isinstance(each.ctx, ast.Store))
        found = [each for each in stored if ast.unparse(each) == code]
    return [each for each in found if not _is_none(script.statement(each))]


def _is_none(statement: ast.stmt) -> bool:
    """Whether it is `mask = None`, or `mask: Net` alone."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return True
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, ast.Constant) and value.value is None


def _is_of_itself(script: Script, store: ast.expr, code: str) -> bool:
    """Whether it is `mask = mask.cuda()`, which only runs where there is one."""
    statement = script.statement(store)
    return isinstance(statement, ast.Assign) and any(
        isinstance(each, _VARIABLES) and ast.unparse(each) == code for each in ast.walk(statement.value)
    )


def _makers(script: Script, stores: Sequence[ast.expr], at: ast.stmt) -> dict[ast.AST, list[ast.stmt]]:
    """The statements that give the value, by what holds them in a block around the statement that is looked from."""
    around = {at, *script.ancestors(at)}
    makers: dict[ast.AST, list[ast.stmt]] = {}
    for store in stores:
        maker: ast.AST = script.statement(store)
        while script.parents[maker] not in around:
            maker = script.parents[maker]
        makers.setdefault(maker, []).append(script.statement(store))
    return makers


def _test(script: Script, maker: ast.AST, stored: Sequence[ast.stmt], at: ast.stmt) -> str:
    """The condition under which an `if` gives the value; "" for what is none, or where it cannot be asked again."""
    if not isinstance(maker, ast.If):
        return ""
    tests = [*_tests(maker)]
    gives = [any(each in way for each in stored) for way in ways(maker)]
    if not all(any(each in way for way in ways(maker)) for each in stored) or all(gives):
        return ""
    if not all(_lasts(script, test, maker, at) for test in tests):
        return ""
    count, place = gives.index(False), gives.index(True)
    if count and not any(gives[count:]):
        return _unparsed(ast.Or(), tests[:count])
    if sum(gives) > 1:
        return ""
    before = [] if place < len(tests) and _exclude_each_other(tests) else [_denied(test) for test in tests[:place]]
    return _unparsed(ast.And(), [*before, *tests[place : place + 1]])


def _exclude_each_other(tests: Sequence[ast.expr]) -> bool:
    """Whether they are `kind == "a"`, `kind == "b"`."""
    compared = [
        (ast.unparse(test.left), test.comparators[0].value)
        for test in tests
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
        if isinstance(test.comparators[0], ast.Constant)
    ]
    return len({left for left, _ in compared}) == 1 and len({value for _, value in compared}) == len(tests)


def _denied(test: ast.expr) -> ast.expr:
    is_denied = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return test.operand if is_denied else ast.UnaryOp(ast.Not(), test)  # type: ignore[attr-defined]


def _unparsed(operator: ast.boolop, tests: Sequence[ast.expr]) -> str:
    return ast.unparse(tests[0] if len(tests) == 1 else ast.BoolOp(operator, [*tests]))


def _tests(branches: ast.If) -> Iterator[ast.expr]:
    """The tests of an `if` and of its `elif`, in order."""
    yield branches.test
    if len(branches.orelse) == 1 and isinstance(branches.orelse[0], ast.If):
        yield from _tests(branches.orelse[0])


def _lasts(script: Script, test: ast.expr, maker: ast.If, at: ast.stmt) -> bool:
    """Whether a test says at a statement what it said at the `if` before it."""
    parts = [*ast.walk(test)]
    if not all(isinstance(each, (*_LASTING, *_OPERATORS)) for each in parts):
        return False
    asked = {ast.unparse(each) for each in parts if isinstance(each, _VARIABLES)}
    return not any(
        isinstance(each.ctx, ast.Store) and maker.lineno <= each.lineno < at.lineno and ast.unparse(each) in asked
        for each in script.find(*_VARIABLES)
    )


def _tests_around(script: Script, at: ast.stmt) -> Iterator[str]:
    """The tests that have held where a statement is reached."""
    inner: ast.AST = at
    for parent in script.ancestors(at):
        if isinstance(parent, ast.If) and inner in parent.body:
            yield ast.unparse(parent.test)
        inner = parent
