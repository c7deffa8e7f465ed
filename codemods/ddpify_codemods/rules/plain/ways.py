"""By what a function comes to some code, or does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.script import Script

_EXITS = frozenset({"exit", "quit", "_exit"})
_LOOPS = (ast.For, ast.While)


def deciding(script: Script, node: ast.AST) -> Iterator[ast.AST]:
    """By what a function comes to some code: the conditions around it, and those before it, where it may leave."""
    scope, child, loops = script.scope(node), node, list[ast.AST]()
    for around in script.ancestors(node):
        if around is scope:
            break
        if isinstance(around, ast.If | ast.IfExp | ast.While) and child is not around.test:
            yield around.test
        elif isinstance(around, ast.BoolOp):
            yield from around.values[: around.values.index(child)]  # type: ignore[arg-type]
        elif isinstance(around, ast.For) and child is not around.iter:
            yield around.iter
        elif isinstance(around, ast.Try) and around.handlers:
            yield from around.body[: around.body.index(child)] if child in around.body else around.body
        elif isinstance(around, ast.Match):
            yield around.subject
        loops += [around] if isinstance(around, _LOOPS) else []
        child = around
    for branch in script.find(ast.If, ast.Try):
        before = getattr(branch, "lineno", 0) < getattr(node, "lineno", 0)
        in_loop = any(each in loops for each in script.ancestors(branch))
        if script.scope(branch) is scope and (before or in_loop) and _leaves(script, branch, loops):
            yield from branch.body if isinstance(branch, ast.Try) else [branch.test]


def _leaves(script: Script, branch: ast.If | ast.Try, loops: list[ast.AST]) -> bool:
    """Whether a function may leave in a branch: itself, the program, or a turn of some loops."""
    for part in ast.walk(branch):
        if isinstance(part, ast.Return | ast.Raise):
            return True
        if isinstance(part, ast.Break | ast.Continue):
            loop = next((each for each in script.ancestors(part) if isinstance(each, _LOOPS)), None)
            if loop in loops:
                return True
        if isinstance(part, ast.Call) and last_name(part.func) in _EXITS:
            return True
    return False
