"""Whether a name, an attribute or a key holds a module in any case, or below a condition only: `if args.mask: …`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .bindings import Scope
from .called_modules import COMPREHENSIONS
from .script import Script

_ENDS = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def conditions(script: Script, node: ast.AST, at: ast.stmt) -> list[ast.If | ast.IfExp | ast.BoolOp]:
    """The conditions below which an expression is read, and a statement of its function does not stand."""
    around = set(script.ancestors(at))
    found: list[ast.If | ast.IfExp | ast.BoolOp] = []
    for parent in script.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            break
        if isinstance(parent, (ast.If, ast.IfExp, ast.BoolOp)) and parent not in around:
            found.append(parent)
    return found


def is_surely_bound(script: Script, node: ast.expr, at: ast.stmt) -> bool:
    """Whether what an expression names has a value at a statement, on each way there that this file shows.

    Args: the file; a name, an attribute or an entry of a dictionary; the statement.
    Returns True where nothing is seen that assigns it.
    """
    if any(_asks(each, ast.unparse(node)) for each in conditions(script, node, at)):
        return False
    scopes = list(dict.fromkeys(script.scope(each) for each in _stores(script, node)))
    if isinstance(node, ast.Name):
        scope = script.scope(node)
        if not isinstance(scope, ast.Module) and (default := _default(scope, node.id)) is not None:
            return not _may_be_none(default) or _Ways(script, node, at).give(scope.body)
        scopes = [each for each in (scope, script.tree) if each in scopes][:1]
    return not scopes or any(_Ways(script, node, at).give(scope.body) for scope in scopes)


class _Ways:
    """The ways through statements to one of them, and whether all give something its value."""

    def __init__(self, script: Script, node: ast.expr, at: ast.stmt) -> None:
        self._around = {at, *script.ancestors(at)}
        self._code = ast.unparse(node)

    def give(self, statements: Sequence[ast.AST]) -> bool:
        """Whether one of some statements gives it in any case, or none of them leads further."""
        return any(self._gives(each) or _ends(each) for each in statements)

    def _gives(self, node: ast.AST) -> bool:
        if isinstance(node, ast.If):
            ways = [way for way in (node.body, node.orelse) if not self._around.isdisjoint(way)]
            return all(map(self.give, ways or (node.body, node.orelse)))
        if isinstance(node, ast.Match):
            return all(self.give(case.body) for case in node.cases)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if isinstance(node, (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Try)):
            return self.give(node.body) or any(map(self._stores, (node, *ast.iter_child_nodes(node))))
        return self._uses(node) or any(map(self._stores, ast.walk(node)))

    def _uses(self, node: ast.AST) -> bool:
        """Whether a statement calls it in any case, or one of its methods: else it ends there in an error."""
        if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)):
            return False
        used = getattr(node, "value" if isinstance(node, ast.Attribute) else "func", None)
        if isinstance(used, ast.expr) and ast.unparse(used) == self._code:
            return True
        return any(map(self._uses, ast.iter_child_nodes(node)))

    def _stores(self, node: ast.AST) -> bool:
        """Whether a part of a statement is the name that it stores, and what it stores is not None."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and (node.value is None or _may_be_none(node.value)):
            return False
        assigned = node.targets if isinstance(node, ast.Assign) else ()
        targets = (*assigned, getattr(node, "target", None), getattr(node, "optional_vars", None))
        names = [part for each in targets if isinstance(each, ast.expr) for part in ast.walk(each)]
        if any(isinstance(getattr(each, "ctx", None), ast.Store) and ast.unparse(each) == self._code for each in names):
            return True
        return isinstance(node, ast.alias) and (node.asname or node.name) == self._code


def _ends(node: ast.AST) -> bool:
    called = ast.unparse(node.value.func) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else ""
    return isinstance(node, _ENDS) or called in ("sys.exit", "exit", "quit")


def _stores(script: Script, node: ast.expr) -> Iterator[ast.AST]:
    """Where a name is stored: an attribute of `self`, in the class around the expression, others in its function."""
    code, scope, owner = ast.unparse(node), script.scope(node), _class_around(script, node)
    for each in script.find(ast.Name, ast.Attribute, ast.Subscript):
        there = script.scope(each) in (scope, script.tree)
        is_own = _class_around(script, each) is owner if code.startswith("self.") else there
        if isinstance(each.ctx, ast.Store) and is_own and ast.unparse(each) == code:
            yield each


def _class_around(script: Script, node: ast.AST) -> ast.AST | None:
    return next((parent for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def _may_be_none(value: ast.expr) -> bool:
    """Whether it is written as None, or in one of two cases: `Net() if args.mask else None`."""
    if isinstance(value, ast.IfExp):
        return _may_be_none(value.body) or _may_be_none(value.orelse)
    return isinstance(value, ast.Constant) and value.value is None


def _default(scope: Scope, name: str) -> ast.expr | None:
    """The default of a parameter; a name that stands for itself where it has none; None for no parameter."""
    assert not isinstance(scope, ast.Module)
    given = scope.args
    by_place = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(by_place) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    for each, default in zip([*by_place, *given.kwonlyargs], defaults, strict=True):
        if each.arg == name:
            return default or ast.Name(name)
    return None


def _asks(condition: ast.If | ast.IfExp | ast.BoolOp, code: str) -> bool:
    """Whether a condition is that a value is there: `if aux is not None:`, `if aux and args.mask:`."""
    asked = condition.values if isinstance(condition, ast.BoolOp) else [condition.test]
    asked = [part for each in asked for part in (each.values if isinstance(each, ast.BoolOp) else [each])]
    compared = [each.left for each in asked if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.IsNot)]
    return code in map(ast.unparse, (*asked, *compared))
