"""What counts the samples that a loop has gone through: `for i, v in enumerate(x)`, `scale *= 0.9`. The place of a
sample among those of its rank is not the one in the batch."""

from __future__ import annotations

import ast

from ..called_modules import last_name
from ..script import Script
from .after_loops import begins_in, mentions
from .operations import runs_over_samples
from .values import LOCAL_ROWS, Iteration, Value

_COUNT = frozenset({"range", "trange", "arange", "enumerate"})


def takes_samples(over: Value) -> bool:
    """Whether a loop is seen to run over samples, or over one of the things that a batch holds: a tensor as a rule."""
    return runs_over_samples(over) or _is_part(over)


def counts_to(over: ast.expr) -> ast.expr | None:
    """What a loop over numbers counts to; None for others."""
    counts = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in ("range", "trange")
    return over.args[min(1, len(over.args) - 1)] if counts and over.args else None  # type: ignore[attr-defined]


def is_counted(script: Script, index: ast.expr) -> bool:
    """Whether an index is made of the number of a loop's turn: i of `for i in range(4)`, `for i, x in enumerate(xs)`,
    by which a sample is taken of a tensor."""
    scope = script.scope(index)
    names = {each.id for each in ast.walk(index) if isinstance(each, ast.Name)}
    stores = [each for name in names for each in script.stores.get((scope, name), ())]
    return any(_is_number(script, each) for each in stores)


def _is_number(script: Script, name: ast.AST) -> bool:
    """Whether a loop gives a name the number of its turn."""
    parent = script.parents[name]
    in_front = isinstance(parent, ast.Tuple) and parent.elts[0] is name
    target, loop = (parent, script.parents[parent]) if in_front else (name, parent)
    if not isinstance(loop, ast.For | ast.comprehension) or loop.target is not target:
        return False
    called = last_name(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
    return called in _COUNT and (called == "enumerate") == in_front


def _is_part(over: Value) -> bool:
    inner = [each for thing in over.only(Iteration) if isinstance(thing, Iteration) for each in thing.inner]
    return (over.part and over.kind in LOCAL_ROWS) or any(map(_is_part, inner))


def goes_on(loop: ast.AST, node: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement in a loop makes a number of the one that the turn before left: `scale *= 0.9`."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and not begins_in(loop, node)
    target = node.targets[0]
    numbers = isinstance(node.value, ast.BinOp | ast.UnaryOp | ast.IfExp | ast.BoolOp)
    return isinstance(target, ast.Name) and numbers and mentions(node.value, target) and not begins_in(loop, node)
