"""Which variables a loop still reads when its body begins: what it has to have then, to go on from there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..bindings import Scope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OWN = (*_FUNCTIONS, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Names = frozenset[str]
_NONE: _Names = frozenset()


@dataclass(frozen=True)
class _After:
    """What is read after a statement, after a `break`, and after a `continue`."""

    end: _Names
    stop: _Names = _NONE
    again: _Names = _NONE


def live_in(scope: Scope, loop: ast.For | ast.While, runs_once: bool) -> _Names:
    """The variables of a scope that may be read, before they are assigned, from where the loop's body begins.

    Args:
        scope: around the loop. loop: of which the item is drawn, or the test is made, already. runs_once: whether every
            `for` within is taken to have an item, so that what it assigns is assigned.
    """
    read_later = _free_names(scope)
    found = _read(scope, loop, runs_once).found
    targets = stored(loop.target) if isinstance(loop, ast.For) else _NONE
    return (found if runs_once else found | read_later) - targets


def live_after(scope: Scope, loop: ast.For | ast.While, runs_once: bool) -> _Names:
    """The variables that may be read after a loop; arguments as of `live_in`."""
    return _read(scope, loop, runs_once).after


def _read(scope: Scope, loop: ast.For | ast.While, runs_once: bool) -> _LivenessReader:
    reader = _LivenessReader(runs_once, loop)
    is_seen = isinstance(scope, ast.Module) and not runs_once
    reader.block(scope.body, _After(_free_names(scope) if is_seen else _NONE))
    return reader


def stored(*nodes: ast.AST) -> _Names:
    """The variables that statements assign, but for those of functions that they define."""
    return frozenset(_stored(nodes))


def loaded(*nodes: ast.AST) -> _Names:
    """The variables that are read in statements or expressions, also by functions within."""
    return frozenset(name for node in nodes for name in _loaded(node))


def _loaded(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, _FUNCTIONS):
        yield from free_names(node)
        yield from loaded(
            *getattr(node, "decorator_list", ()), *node.args.defaults, *filter(None, node.args.kw_defaults)
        )
    elif isinstance(node, _COMPREHENSIONS):
        own = {name for part in node.generators for name in stored(part.target)}
        yield from (name for child in ast.iter_child_nodes(node) for name in _loaded(child) if name not in own)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _loaded(child)


def free_names(function: ast.AST) -> _Names:
    """The names that a function reads, or is called by name with, and does not bind."""
    if isinstance(function, ast.ClassDef):
        return loaded(function)
    body = function.body if isinstance(function.body, list) else [function.body]  # type: ignore[attr-defined]
    own = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}  # type: ignore[attr-defined]
    shared = {
        name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    return loaded(*body) - ((own | stored(*body)) - shared)


def _stored(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        if isinstance(node, _OWN):
            if not isinstance(node, ast.Lambda):
                yield node.name
        elif not isinstance(node, _COMPREHENSIONS):
            yield from _stored(list(ast.iter_child_nodes(node)))


def _free_names(scope: Scope) -> _Names:
    """What functions within a scope read of it, whenever they are called."""
    inner = [node for node in ast.walk(scope) if isinstance(node, _OWN) and node is not scope]
    return frozenset().union(*map(free_names, inner))


class _LivenessReader:
    """Reads statements backwards. found: what is read from the beginning of `loop`'s body; after: behind it."""

    def __init__(self, runs_once: bool, loop: ast.For | ast.While) -> None:
        self.runs_once, self.loop = runs_once, loop
        self.found = self.after = _NONE

    def block(self, body: Sequence[ast.stmt], after: _After) -> _Names:
        live = after.end
        for statement in reversed(body):
            live = self.statement(statement, replace(after, end=live))
        return live

    def statement(self, node: ast.stmt, after: _After) -> _Names:
        if isinstance(node, ast.AugAssign):
            return after.end | loaded(node) | stored(node.target)
        if isinstance(node, (ast.Return, ast.Raise)):
            return loaded(node)
        if isinstance(node, ast.Break):
            return after.stop
        if isinstance(node, ast.Continue):
            return after.again
        if isinstance(node, ast.If):
            return self.block(node.body, after) | self.block(node.orelse, after) | loaded(node.test)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, after)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return (self.block(node.body, after) - stored(*node.items)) | loaded(*node.items)
        if isinstance(node, ast.Try):
            rest = replace(after, end=self.block(node.finalbody, after))
            caught = [
                self.block(each.body, rest) - {each.name} | loaded(*filter(None, [each.type])) for each in node.handlers
            ]
            ended = replace(rest, end=self.block(node.orelse, rest))
            return self.block(node.body, ended).union(*caught)
        if isinstance(node, ast.Match):
            cases = [self.block(case.body, after) for case in node.cases]
            return after.end.union(*cases) | loaded(node.subject, *node.cases)
        return (after.end - stored(node)) | loaded(node)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, after: _After) -> _Names:
        read = loaded(node.test) if isinstance(node, ast.While) else _NONE
        bound = _NONE if isinstance(node, ast.While) else stored(node.target)
        left = self.block(node.orelse, after)
        head, before = left | read, None
        while head != before:
            before = head
            begun = self.block(node.body, _After(head, after.end, head))
            head |= begun - bound
        if node is self.loop:
            self.found, self.after = begun, after.end
        if isinstance(node, ast.While):
            return head
        return (begun - bound if self.runs_once else head) | loaded(node.iter)
