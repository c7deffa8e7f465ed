"""Loops that count the samples of a batch for which something holds, one after the other:
`for i in range(len(y)): if out[i].argmax() == y[i]: hits += 1`. Each rank counts its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..counted_among import rows_counted
from ..script import KEPT, Script
from .frames import Frame
from .state import State

_BUILT_IN = frozenset({"int", "float", "abs", "min", "max", "round", "bool"})
# Functions and methods that only compute something of what they are given, of tensors as of arrays and numbers.
_COMPUTE = frozenset(
    {"argmax", "argmin", "max", "min", "sum", "mean", "any", "all", "abs", "round", "item", "tolist", "numpy", "cpu"}
    | {"detach", "float", "int", "long", "bool", "eq", "ne", "gt", "ge", "lt", "le", "equal", "norm", "softmax"}
    | {"sigmoid", "squeeze", "logical_and", "logical_or", "logical_not", "allclose", "isclose"}
)
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass
class Counts:
    """What a loop takes a sample of in each turn, what else it reads, and what it adds to. turn: the number of its
    turn; own: what stands for this turn's sample."""

    turn: str
    own: set[str]
    taken: list[ast.expr]
    others: list[ast.expr] = field(default_factory=list)
    counters: list[ast.Name] = field(default_factory=list)


class _NotAlone(Exception):
    """The loop does something else, too."""


class SampleCounts(State):
    """What is counted in a loop over samples."""

    def is_a_tensor(self, node: ast.expr, frame: Frame) -> bool:
        raise NotImplementedError

    def counts_by_sample(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a condition only decides if this turn's sample is counted, by what is made of no other one."""
        rows = [context for context in self.contexts if context.how == "rows"]
        if len(rows) != 1 or rows != self.contexts[-1:] or rows[0].frame is not frame or rows[0].drawn:
            return False
        loop = rows[0].node
        counts = counts_alone(frame.script, loop) if isinstance(loop, ast.For) else None
        if counts is None or self.in_forward or self.own_ways or loop not in frame.script.ancestors(node):
            return False
        taken = [self.value(each, frame) for each in counts.taken if self.is_of_each(each, frame)]
        others = [self.value(each, frame) for each in counts.others]
        numbers = [self.value(each, frame) for each in counts.counters]
        return (
            len(taken) == len(counts.taken)
            and len({value.batches for value in taken}) == 1
            and not any(value.is_local or value.things for value in others)
            and all(value.host and value.kind in ("same", "sum") and not value.things for value in numbers)
        )

    def is_of_each(self, node: ast.expr, frame: Frame) -> bool:
        """Whether something of a batch is seen to hold one entry for each of its samples, in their order."""
        value = self.value(node, frame)
        if value.things or value.reason or value.merged or value.whole or len(value.batches) != 1:
            return False
        is_one = value.dimensions is not None or self.is_a_tensor(node, frame)
        return value.kind == "rows" or (value.kind == "batch" and is_one)


@lru_cache(maxsize=KEPT)
def counts_alone(script: Script, loop: ast.For) -> Counts | None:
    """What a loop counts of which each turn is for itself; None for others."""
    over, names = loop.iter, loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    name = script.qualified(over.func) if isinstance(over, ast.Call) and not over.keywords else ""
    given = over.args if isinstance(over, ast.Call) else [over]
    own = {each.id for each in names if isinstance(each, ast.Name)}
    counted = rows_counted(given[0]) if name == "range" and len(given) == 1 else None
    found = Counts("", own, given)
    if counted is not None and len(own) == 1:
        found = Counts(own.pop(), set(), [counted])
    elif not (name == "zip" and len(given) == len(names) > 1) and not isinstance(over, ast.Name):
        return None
    if loop.orelse or (not found.turn and len(own) < len(given)):
        return None
    try:
        _follow(script, loop.body, found)
    except _NotAlone:
        return None
    stored = {each.id for each in found.counters} | {found.turn}
    read = {each.id for part in (*found.taken, *found.others) for each in ast.walk(part) if isinstance(each, ast.Name)}
    return None if stored & (read | found.own) or read & found.own else found


def _follow(script: Script, body: Sequence[ast.stmt], found: Counts) -> None:
    for each in body:
        number = each.value.value if isinstance(each, ast.AugAssign) and isinstance(each.value, ast.Constant) else None
        if isinstance(each, ast.If):
            _read(script, each.test, found)
            _follow(script, [*each.body, *each.orelse], found)
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and type(number) in (int, float):
            if not isinstance(each.op, ast.Add | ast.Sub):
                raise _NotAlone
            found.counters.append(each.target)
        elif not isinstance(each, ast.Pass):
            raise _NotAlone


def _read(script: Script, node: ast.expr, found: Counts) -> None:
    """Note what an expression takes of this turn's sample, and what else it reads."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        first, *rest = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
        is_place = isinstance(first, ast.Name) and first.id == found.turn
        if is_place and isinstance(node.value, ast.Name | ast.Attribute):
            found.taken.append(node.value)
            parts = rest
        else:
            parts = [node.value, first, *rest]
    elif isinstance(node, ast.Call):
        of_library = script.qualified(node.func).startswith(("torch.", "numpy."))
        parts = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _COMPUTE:
            parts += [] if of_library else [node.func.value]
        elif script.qualified(node.func) not in _BUILT_IN - script.defined:
            raise _NotAlone
    elif isinstance(node, ast.Compare) and all(isinstance(each, _COMPARES) for each in node.ops):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Name | ast.Attribute):
        found.others += [] if isinstance(node, ast.Name) and node.id in found.own else [node]
    elif not isinstance(node, ast.Constant):
        raise _NotAlone
    for each in parts:
        _read(script, each, found)
