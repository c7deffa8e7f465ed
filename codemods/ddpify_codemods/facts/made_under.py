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
_ASKS = frozenset({"items", "keys", "values", "get"})
_CHANGES = frozenset({"append", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse"})
_CHANGES |= {"setdefault", "sort", "update"}
_OPERATORS = (ast.expr_context, ast.cmpop, ast.boolop, ast.Not)


def made_under(script: Script, code: str, at: ast.stmt) -> str:
    """The condition under which a variable has a value where a statement begins.

    Args: the file, the source of the variable ("mask", "self.nets['mask']"), the statement.
    Returns: the condition, as it can be asked there once more; "" where the variable has a value in any case, where
    the statement stands under the condition itself, or where it cannot be told.
    """
    stores = [each for each in _stores(script, code, at) if not is_of_itself(script, each, code)]
    if not all(script.scope(each) is script.scope(at) and each.lineno < at.lineno for each in stores):
        return ""
    tests = []
    for maker, stored in _makers(script, stores, at).items():
        test = _test(script, maker, stored, at)
        if not test:
            return ""
        tests.append(test)
    in_any_case = any(f"not {test}" in tests for test in tests)
    return (
        ""
        if in_any_case or set(tests) & {*map(ast.unparse, tests_around(script, at))}
        else " or ".join(dict.fromkeys(tests))
    )


def _stores(script: Script, code: str, at: ast.stmt) -> Sequence[ast.expr]:
    """Where a variable gets a value that is not None; nothing where it may get one in another way, too."""
    scope = script.scope(at)
    found: Sequence[ast.expr] = []
    if code.isidentifier():
        shared = (name for each in script.find(ast.Global, ast.Nonlocal) for name in each.names)
        if code not in {*shared, *arguments(scope), *script.imported, *script.defined}:
            found = script.stores.get((scope, code), [])
    elif _begins_without(script, ast.parse(code, mode="eval").body, at):
        stored = (each for each in script.find(*_VARIABLES) if isinstance(each.ctx, ast.Store))
        found = [each for each in stored if ast.unparse(each) == code]
    return [each for each in found if not is_none(script.statement(each))]


def _begins_without(script: Script, variable: ast.expr, at: ast.stmt) -> bool:
    """Whether nothing else can give a value to `self.mask`, of a class that is derived from none, or to
    `nets["mask"]`, where `nets = {}`, or has other keys."""
    if isinstance(variable, ast.Attribute):
        cls = next((each for each in script.ancestors(at) if isinstance(each, ast.ClassDef)), None)
        is_own = cls is not None and not cls.bases and not cls.keywords and ast.unparse(variable.value) == "self"
        at_once = {*_names(cls.body)} if cls is not None else set()
        sets = any(isinstance(each.func, ast.Name) and each.func.id == "setattr" for each in script.find(ast.Call))
        return is_own and not sets and variable.attr not in at_once
    if not isinstance(variable, ast.Subscript):
        return False
    holder = ast.unparse(variable.value)
    uses = [each for each in script.find(*_VARIABLES) if ast.unparse(each) == holder]
    made = [script.statement(each) for each in uses if isinstance(each.ctx, ast.Store)]
    if len(made) != 1 or not isinstance(made[0], ast.Assign) or not _lacks(made[0].value, variable.slice):
        return False
    return all(_looks_up(script, each) for each in uses if isinstance(each.ctx, ast.Load))


def _lacks(value: ast.expr, key: ast.expr) -> bool:
    """Whether it is a new dict that has no entry under a key."""
    if not isinstance(value, ast.Dict):
        return ast.unparse(value) == "dict()"
    written = isinstance(key, ast.Constant) and all(isinstance(each, ast.Constant) for each in value.keys)
    return not value.keys or (written and ast.unparse(key) not in map(ast.unparse, filter(None, value.keys)))


def _names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """What the body of a class gives a value."""
    for each in body:
        for part in ast.walk(each):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _looks_up(script: Script, holder: ast.expr) -> bool:
    """Whether a dict is only asked, run over, or gets an entry under its key."""
    parent = script.parents[holder]
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ASKS
    return (isinstance(parent, ast.Subscript) and parent.value is holder) or isinstance(
        parent, (ast.For, ast.comprehension, ast.Compare)
    )


def is_none(statement: ast.stmt) -> bool:
    """Whether it is `mask = None`, or `mask: Net` alone."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return True
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, ast.Constant) and value.value is None


def is_of_itself(script: Script, store: ast.expr, code: str) -> bool:
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
    if not all(lasts(script, test, maker, at) for test in tests):
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
    return test.operand if is_denied else ast.copy_location(ast.UnaryOp(ast.Not(), test), test)  # type: ignore[attr-defined]


def _unparsed(operator: ast.boolop, tests: Sequence[ast.expr]) -> str:
    return ast.unparse(tests[0] if len(tests) == 1 else ast.BoolOp(operator, [*tests]))


def _tests(branches: ast.If) -> Iterator[ast.expr]:
    """The tests of an `if` and of its `elif`, in order."""
    yield branches.test
    if len(branches.orelse) == 1 and isinstance(branches.orelse[0], ast.If):
        yield from _tests(branches.orelse[0])


def lasts(script: Script, test: ast.expr, asked_at: ast.stmt | ast.expr, at: ast.stmt) -> bool:
    """Whether a test says at a statement what it said where it was asked, before that or behind it."""
    parts = [*ast.walk(test)]
    if not all(isinstance(each, (*_LASTING, *_OPERATORS)) for each in parts):
        return False
    asked = {ast.unparse(each) for each in parts if isinstance(each, _VARIABLES)}
    first, last = sorted((asked_at.lineno, at.lineno))
    between = (each for each in script.find(*_VARIABLES) if first <= each.lineno < last)
    return not any(
        isinstance(each.ctx, ast.Store) if ast.unparse(each) in asked else _changes(each, asked) for each in between
    )


def _changes(node: ast.expr, asked: set[str]) -> bool:
    """Whether it is `kinds.remove`, of something that a test asks."""
    return isinstance(node, ast.Attribute) and node.attr in _CHANGES and ast.unparse(node.value) in asked


def tests_around(script: Script, at: ast.AST) -> Iterator[ast.expr]:
    """The tests that have held where something is reached, the parts of `a and b` one by one, too."""
    inner = at
    for parent in script.ancestors(at):
        if isinstance(parent, (ast.If, ast.IfExp)) and inner is not parent.test:
            is_body = inner is parent.body or (isinstance(parent, ast.If) and inner in parent.body)
            held = parent.test if is_body else _denied(parent.test)
            yield held
            yield from held.values if isinstance(held, ast.BoolOp) and isinstance(held.op, ast.And) else ()
        inner = parent
