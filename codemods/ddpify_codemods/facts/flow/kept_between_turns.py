"""What a turn of a loop leaves for the next one, but for what is added up: `last[0] = loss`, `up = not up`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..tree import walk

_VARIABLES = (ast.Name, ast.Attribute, ast.Subscript)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def kept_between_turns(loop: ast.For) -> str:
    """A variable that a loop reads before the turn has given it a value, and gives another one; `next(…)` of what was
    made before; "" where there is none."""
    named = {ast.unparse(part) for part in walk(loop.target) if isinstance(part, _VARIABLES)}
    given = {each for statement in loop.body for part in walk(statement) for each in _given(part)}
    read: set[str] = set()
    _follow(loop.body, named, read)
    nexts = (part for each in loop.body for part in walk(each) if _takes_next(part))
    return min({*(given & read), *map(ast.unparse, nexts)}, default="")


def _takes_next(node: ast.AST) -> bool:
    """Whether it is `next(counter)`, not `next(iter(x))`."""
    is_next = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"
    return is_next and bool(node.args) and not isinstance(node.args[0], ast.Call)  # type: ignore[attr-defined]


def _given(node: ast.AST) -> Iterator[str]:
    """What an assignment gives a value; of an entry, the collection."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign | ast.NamedExpr) else targets
    for target in (part for each in targets for part in walk(each)):
        if isinstance(target, _VARIABLES) and not isinstance(target.ctx, ast.Load):
            yield ast.unparse(target.value if isinstance(target, ast.Subscript) else target)


def _follow(block: Sequence[ast.AST], known: set[str], read: set[str]) -> set[str]:
    """Note what the statements of a block read that has no value of this turn; what has one behind them."""
    for statement in block:
        inner = [blocks for name in _BLOCKS if (blocks := getattr(statement, name, None))]
        parts = [part for each in ast.iter_child_nodes(statement) if not _is_in(each, inner) for part in walk(each)]
        if isinstance(statement, ast.AugAssign):  # it is added up
            parts = [*walk(statement.value)]
        filled = [part.value for part in parts if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)]
        for part in parts:
            is_read = isinstance(part, _VARIABLES) and isinstance(part.ctx, ast.Load) and part not in filled
            if is_read and ast.unparse(part) not in known:
                read.add(ast.unparse(part))
        known |= {
            ast.unparse(part) for part in parts if isinstance(part, _VARIABLES) and isinstance(part.ctx, ast.Store)
        }
        ways = [_follow(each, {*known}, read) for each in inner]
        if isinstance(statement, ast.If):
            known |= set.intersection(*ways) if len(ways) == 2 else set()
        elif isinstance(statement, ast.With) and ways:
            known |= ways[0]
    return known


def _is_in(node: ast.AST, blocks: Sequence[Sequence[ast.AST]]) -> bool:
    return any(node is each for block in blocks for each in block)
