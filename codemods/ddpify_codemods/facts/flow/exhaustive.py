"""Conditions of which one has to hold: a script without an `else` that reads what only its branches make."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..script import Script
from .scopes import FUNCTIONS

_LEAVE = ast.Return | ast.Raise | ast.Continue | ast.Break
_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Set)


def is_exhaustive(script: Script, last: ast.If) -> bool:
    """Whether a run that takes none of the branches which end with `elif …:` soon ends with a NameError.

    Each of them makes a name that nothing else makes but of itself, which is read in any case behind them, and the
    conditions are the same in each turn of a loop: `if args.hier == "top": out = model(top)`, `elif …: out = …`,
    `loss = criterion(out, y)`.
    """
    chain = [last]
    while isinstance(parent := script.parents[chain[-1]], ast.If) and parent.orelse == [chain[-1]]:
        chain.append(parent)
    first = chain[-1]
    if last.orelse or len(chain) < 2 or any(isinstance(each, ast.Try) for each in script.ancestors(first)):
        return False
    made = set.intersection(*({*_made(each.body)} for each in chain))
    named = {name for name in made & {*_read_behind(script, first)} if _only_made_by(script, name, chain)}
    return bool(named) and all(_stays(script, each.test) for each in chain)


def _made(body: list[ast.stmt]) -> Iterator[str]:
    """The names that some statements make in any case."""
    for each in body:
        if isinstance(each, ast.If):
            yield from {*_made(each.body)} & {*_made(each.orelse)}
        for target in each.targets if isinstance(each, ast.Assign) else ():
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (part.id for part in parts if isinstance(part, ast.Name))


def _read_behind(script: Script, first: ast.If) -> Iterator[str]:
    """The names that the next statements read in any case."""
    block = script.block(first)
    for node in block[block.index(first) + 1 :]:
        if isinstance(node, ast.If) and not any(isinstance(part, _LEAVE) for part in ast.walk(node)):
            continue
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return) or node.value is None:
            return
        yield from _read(node.value)


def _read(node: ast.expr) -> Iterator[str]:
    """The names that an expression reads in any case."""
    parts = [*ast.walk(node)]
    if not any(isinstance(part, ast.Lambda | ast.IfExp | ast.BoolOp | ast.comprehension) for part in parts):
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def _of_itself(script: Script, name: str, made: ast.Name) -> bool:
    """Whether a name that is made reads what it was before: `out, y = inverse(out, y)`."""
    statement = script.statement(made)
    return (
        isinstance(statement, ast.Assign) and made not in ast.walk(statement.value) and name in _read(statement.value)
    )


def _only_made_by(script: Script, name: str, chain: list[ast.If]) -> bool:
    scope = script.scope(chain[0])
    stored = [each for each in script.find(ast.Name) if each.id == name and not isinstance(each.ctx, ast.Load)]
    shared = any(name in each.names for each in script.nodes if isinstance(each, ast.Global | ast.Nonlocal))
    own = (each for each in stored if script.scope(each) is scope)
    inside = all(
        isinstance(one.ctx, ast.Store)
        and (any(each in chain for each in script.ancestors(one)) or _of_itself(script, name, one))
        for one in own
    )
    if isinstance(scope, FUNCTIONS):
        given = [each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)]
        return inside and not shared and name not in given
    return inside and not shared and not script.star_imports and name not in {*script.imported, *script.defined}


def _stays(script: Script, test: ast.expr) -> bool:
    """Whether a condition is the same whenever it is asked in a run of the function around it."""
    parts = [part for part in ast.walk(test) if isinstance(part, ast.expr)]
    if not all(isinstance(part, _TESTS) for part in parts):
        return False
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    attributes = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    around = [each for each in script.ancestors(test) if script.scope(each) is script.scope(test)]
    turns = [part for each in around if isinstance(each, ast.For | ast.While) for part in ast.walk(each)]
    changed = {part.id for part in turns if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    changed |= {name for each in script.nodes if isinstance(each, ast.Global | ast.Nonlocal) for name in each.names}
    written = {each.attr for each in script.find(ast.Attribute) if isinstance(each.ctx, ast.Store)}
    return not names & changed and not attributes & written


def may_leave(node: ast.stmt, in_loop: bool = False) -> bool:
    """Whether a statement may end its function, or the turn of a loop around it."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.Continue | ast.Break):
        return not in_loop
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    in_loop |= isinstance(node, ast.For | ast.While)
    parts = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
    parts += [part for case in getattr(node, "cases", ()) for part in case.body]
    return any(may_leave(part, in_loop) for part in parts)
