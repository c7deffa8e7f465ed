"""What a loop leaves behind: names that only its turns give a value, and what its last turn alone does."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..script import KEPT, Script


@lru_cache(maxsize=KEPT)
def left_by(script: Script, loop: ast.AST) -> str:
    """A name that only the turns of a loop give a value, and that its function reads after it; "" for none."""
    if not isinstance(loop, ast.stmt):
        return ""
    scope = script.scope(loop)
    names = [node for node in script.find(ast.Name) if script.scope(node) is scope]
    inside = set(ast.walk(loop))
    stored = {node.id for node in names if node in inside and isinstance(node.ctx, ast.Store)}
    given = {node.id for node in names if isinstance(node.ctx, ast.Store) and _is_before(node, loop)}
    given |= {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)}
    read = (node for node in names if node.id in stored - given and isinstance(node.ctx, ast.Load))
    after = (node for node in read if _is_before(loop, node))
    return next((node.id for node in after if not any(_gives(each, node.id) for each in script.ancestors(node))), "")


@lru_cache(maxsize=KEPT)
def is_of_last_turn(script: Script, loop: ast.AST, name: str) -> bool:
    """Whether a turn of a loop may give a name a value that does not go on from that of the turn before."""
    stores = (each for each in ast.walk(loop) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return any(not _goes_on(script.parents[each], name) for each in stores if each.id == name)


@lru_cache(maxsize=KEPT)
def needs_a_turn(script: Script, loop: ast.AST, name: str) -> bool:
    """Whether a variable is a number of Python until the first turn of a loop adds a tensor to it, and has to be a
    tensor after it: it is asked for what numbers do not have, `correct.double()`, or may be of another type than they.

    Counts, `correct += (out == y).sum()`, are of the type of the 0 that they begin with.
    """
    scope = script.scope(loop)
    names = [node for node in script.find(ast.Name) if node.id == name and script.scope(node) is scope]
    given = [script.statement(node) for node in names if isinstance(node.ctx, ast.Store) and _is_before(node, loop)]
    begins = [_number(each.value) for each in given if isinstance(each, ast.Assign)]
    inside = set(ast.walk(loop))
    adds = [each for each in map(script.parents.get, names) if each in inside and isinstance(each, ast.AugAssign)]
    if not begins or begins[-1] is None:
        return False
    asked = any(isinstance(script.parents[node], ast.Attribute) for node in names if _is_before(loop, node))
    return asked or not (begins[-1] is int and adds and all(_is_count(each.value) for each in adds))


def _number(node: ast.expr) -> type | None:
    """Whether an expression is a number, or several, that are written out: of which type; None for others."""
    values = node.elts if isinstance(node, ast.Tuple) else [node]
    types = {type(each.value) if isinstance(each, ast.Constant) else None for each in values}
    return next((each for each in (float, int) if each in types and types <= {float, int}), None)


def _is_count(node: ast.expr) -> bool:
    """Whether it is the number of elements for which something holds: `(out == y).sum()`, `torch.sum(out.eq(y))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "sum":
        return False
    of = node.args[0] if node.args else node.func.value
    asks = isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in ("eq", "ne")
    return (asks or isinstance(of, ast.Compare)) and not node.keywords


def begins_in(loop: ast.AST, adds: ast.AugAssign | ast.Assign) -> bool:
    """Whether what a statement adds up begins anew in each turn of a loop: `loss = 0`, and in a loop `loss += …`."""
    body = loop.body if isinstance(loop, ast.For | ast.While) else []
    before = (each for each in body if isinstance(each, ast.Assign) and each.lineno < adds.lineno)
    target = adds.target if isinstance(adds, ast.AugAssign) else adds.targets[0]
    return any(ast.unparse(target) in map(ast.unparse, each.targets) for each in before)


def mentions(value: ast.AST, target: ast.expr) -> bool:
    """Whether an expression reads what an assignment writes to."""
    written = ast.unparse(target)
    return any(type(each) is type(target) and ast.unparse(each) == written for each in ast.walk(value))


def _goes_on(statement: ast.AST, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return mentions(statement.value, ast.Name(name))
    return isinstance(statement, ast.AugAssign)


def _is_before(first: ast.AST, second: ast.AST) -> bool:
    """Whether an expression or statement ends above another one."""
    return (first.end_lineno or 0) < second.lineno  # type: ignore[attr-defined, no-any-return]


def _gives(statement: ast.AST, name: str) -> bool:
    """Whether a loop gives a name a value in each turn."""
    if not isinstance(statement, ast.For):
        return False
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement.target))
