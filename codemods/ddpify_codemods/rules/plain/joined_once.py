"""What losses take several times, `z @ z.t()`, is brought together once, under a name of its own: `gathered_z`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...facts.script import Script

# No other rule writes names that begin so.
PREFIXES = {"batch": "gathered", "mean": "reduced", "sum": "reduced"}
_LATER = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def repeated(script: Script, nodes: Iterable[ast.expr]) -> list[list[ast.Name]]:
    """Those of the nodes that are the same variable with the same value, in statements of one block: in each group two
    at least, in order."""
    groups: dict[tuple[int, str], list[ast.Name]] = {}
    found = []
    taken = {node.id for node in script.find(ast.Name)}
    names = [node for node in nodes if isinstance(node, ast.Name) and taken.isdisjoint(_names(node.id))]
    for node in sorted(names, key=lambda name: (name.lineno, name.col_offset)):
        statement = script.statement(node)
        block = script.block(statement)
        is_later = any(isinstance(each, _LATER) for each in _around(script, node, statement))
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return) or is_later:
            continue
        group = groups.get((id(block), node.id), [])
        first = script.statement(group[0]) if group else statement
        between = block[block.index(first) : block.index(statement)] if first in block else [first]
        if not group or any(_may_change(each, node.id) for each in between):
            group = groups[id(block), node.id] = []
            found.append(group)
        group.append(node)
    return [group for group in found if len(group) > 1]


def _around(script: Script, node: ast.AST, statement: ast.stmt) -> list[ast.AST]:
    ancestors = list(script.ancestors(node))
    return ancestors[: ancestors.index(statement)] if statement in ancestors else []


def _names(name: str) -> set[str]:
    """What a variable may be called when it has been brought together."""
    return {f"{prefix}_{name}" for prefix in PREFIXES.values()}


def _may_change(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name another value, or may change the tensor in place."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Attribute | ast.Subscript) and _root(node) == name:
            in_place = isinstance(node, ast.Attribute) and node.attr.endswith("_")
            if in_place or not isinstance(node.ctx, ast.Load):
                return True
        if isinstance(node, ast.Call) and any(_root(each) == name for each in node.args):
            in_place = isinstance(statement, ast.Expr) or ast.unparse(node.func).endswith("_")
            if in_place:
                return True
    return False


def _root(node: ast.expr) -> str:
    """The name of what a part of something is a part of: z of `z.data[0]`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
