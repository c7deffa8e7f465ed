"""Samples that a collate function pads in a loop: it makes a tensor as long as the longest of them, and writes each to
the beginning of its row."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..script import Script

_FILLS = {"torch.zeros": "0", "torch.ones": "1", "numpy.zeros": "0", "numpy.ones": "1"}
_OF_ANY_TYPE = frozenset({"long", "int", "float", "bool", "double", "astype", "type", "to"})


@dataclass(frozen=True)
class Filled:
    """The list of samples that a tensor is filled with, what it is full of before, its sizes behind their lengths, and
    the loop that fills it."""

    samples: str
    value: ast.expr
    sizes: tuple[ast.expr, ...]
    loop: ast.For


def filled(script: Script, function: ast.AST, node: ast.Assign, lists: Collection[str]) -> Filled | None:
    """How a tensor is filled that is made here: `padded = torch.zeros(len(texts), max(lengths))`; None for others.

    lists: the names of lists with an entry for each sample.
    """
    target = node.targets[0]
    sizes, value = _made(script, node.value)
    if not isinstance(target, ast.Name) or len(sizes) < 2 or value is None:
        return None
    stored = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id]
    if not counts(function, sizes[0], lists) or len([each for each in stored if not _is_read(each)]) != 1:
        return None
    measured = [each for each in lists if is_longest(function, sizes[1], each)]
    loops = [each for each in getattr(function, "body", ()) if isinstance(each, ast.For) and _writes(each, target.id)]
    if len(measured) != 1 or len(loops) != 1:
        return None
    known = _Turn(function, measured[0], len(sizes) - 2, any(map(size_of_first, sizes)))
    if not _fills(known, loops[0], lists):
        return None
    return Filled(measured[0], value, tuple(sizes[2:]), loops[0])


def counts(function: ast.AST, node: ast.expr, lists: Collection[str]) -> bool:
    """Whether an expression asks how many samples there are: `len(batch)`, under a name as well."""
    node = _value_of(function, node)
    is_len = isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1
    return is_len and ast.unparse(node.args[0]) in lists  # type: ignore[attr-defined]


def size_of_first(node: ast.expr) -> str:
    """The list whose first sample is asked for a size other than its length, which all have: `texts[0].shape[1]`; ""
    for others."""
    asked = re.fullmatch(r"(\w+)\[0\]\.(?:shape\[[1-9]\]|size\([1-9]\))", ast.unparse(node))
    return asked[1] if asked is not None else ""


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _made(script: Script, node: ast.expr) -> tuple[Sequence[ast.expr], ast.expr | None]:
    """The sizes of a tensor, and what it is full of."""
    filled_with: ast.expr | None = None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _is_factory(script, node):
        if node.func.attr == "fill_" and len(node.args) == 1 and filled_with is None:
            filled_with = node.args[0]
        elif node.func.attr not in _OF_ANY_TYPE:
            return (), None
        node = node.func.value
    if not isinstance(node, ast.Call) or not _is_factory(script, node):
        return (), None
    name = script.qualified(node.func)
    full = name.rpartition(".")[2] == "full"
    sizes: Sequence[ast.expr] = node.args[:1] if full else node.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    value = filled_with or (node.args[1] if full and len(node.args) == 2 else None)
    return sizes, value if value is not None or full else ast.Constant(int(_FILLS[name]))


def _is_factory(script: Script, node: ast.Call) -> bool:
    return script.qualified(node.func) in (*_FILLS, "torch.full", "numpy.full")


def _measured(node: ast.expr) -> str:
    """The code of what is asked for its length, `len(x)`, `x.shape[0]`, `x.size(0)`; "" for others."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return ast.unparse(node.args[0])
    asked = re.fullmatch(r"(.+)\.(?:shape\[0\]|size\(0\))", ast.unparse(node))
    return asked[1] if asked is not None else ""


def _value_of(function: ast.AST, node: ast.expr) -> ast.expr:
    """What a name stands for that is given a value once, by a statement of a function."""
    if not isinstance(node, ast.Name):
        return node
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == node.id]
    values = [
        each.value
        for each in getattr(function, "body", ())
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and ast.unparse(each.targets[0]) == node.id
    ]
    once = len([each for each in stores if not isinstance(each.ctx, ast.Load)]) == 1
    return values[0] if once and len(values) == 1 else node


def is_longest(function: ast.AST, node: ast.expr, samples: str) -> bool:
    """Whether a number is the length of the longest sample, or a constant if that is larger."""
    node = _value_of(function, node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "max" or node.keywords:
        return False
    if len(node.args) == 1:
        return _are_lengths(function, node.args[0], samples)
    of_samples = [is_longest(function, each, samples) for each in node.args]
    stored = {
        each.id for each in ast.walk(function) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    others = [each for known, each in zip(of_samples, node.args, strict=True) if not known]
    alike = all(
        isinstance(each, ast.Constant) or (isinstance(each, ast.Name) and each.id not in stored) for each in others
    )
    return sum(of_samples) == 1 and alike


def _are_lengths(function: ast.AST, node: ast.expr, samples: str) -> bool:
    """`[len(each) for each in samples]`, under a name as well."""
    node = _value_of(function, node)
    if not isinstance(node, ast.ListComp | ast.GeneratorExp) or len(node.generators) != 1:
        return False
    part = node.generators[0]
    over = isinstance(part.iter, ast.Name) and part.iter.id == samples and not part.ifs
    return over and isinstance(part.target, ast.Name) and _measured(node.elt) == part.target.id


def _writes(loop: ast.For, name: str) -> bool:
    parts = (each for each in ast.walk(loop) if isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load))
    return any(isinstance(each, ast.Name) and each.id == name for part in parts for each in ast.walk(part.value))


def _fills(turn: _Turn, loop: ast.For, lists: Collection[str]) -> bool:
    """Whether a loop writes each sample to the beginning of its row, as long as it is, and does nothing else."""
    over, target = loop.iter, loop.target
    ranges = isinstance(over, ast.Call) and ast.unparse(over.func) == "range" and len(over.args) == 1
    if loop.orelse:
        return False
    if ranges and isinstance(target, ast.Name) and counts(turn.function, over.args[0], lists):  # type: ignore[attr-defined]
        turn = replace(turn, at=target.id, each=frozenset({f"{turn.samples}[{target.id}]"}))
    elif ast.unparse(over) == f"enumerate({turn.samples})" and isinstance(target, ast.Tuple):
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) != 2:
            return False
        turn = replace(turn, at=names[0], each=frozenset({names[1]}))
    else:
        return False
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        to, value = statement.targets[0], statement.value
        if isinstance(to, ast.Name) and to.id in {turn.at, *lists}:
            return False
        if isinstance(to, ast.Name) and ast.unparse(value) in turn.each:
            turn = replace(turn, each=turn.each | {to.id})
        elif isinstance(to, ast.Name) and turn.is_length(value):
            turn = replace(turn, ends=turn.ends | {to.id})
        elif not turn.is_row(to) or not turn.is_sample(value):
            return False
    return True


@dataclass(frozen=True)
class _Turn:
    """What is known in a turn of a loop: the list of samples, how many dimensions they have beside their length, and
    whether the first one gives their sizes; the place of a sample, what stands for it and for its length."""

    function: ast.AST
    samples: str
    more: int
    of_first: bool
    at: str = ""
    each: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()

    def is_length(self, node: ast.expr) -> bool:
        """`len(each)`, `lengths[i]`."""
        if ast.unparse(node) in self.ends or _measured(node) in self.each:
            return True
        own = isinstance(node, ast.Subscript) and ast.unparse(node.slice) == self.at
        return own and _are_lengths(self.function, node.value, self.samples)  # type: ignore[attr-defined]

    def is_row(self, node: ast.expr) -> bool:
        """`padded[i, :end]`, `padded[i][:end]`, `padded[i, :end, :]`."""
        if not isinstance(node, ast.Subscript):
            return False
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            row, part, *others = node.slice.elts
            whole = node.value
        elif isinstance(node.value, ast.Subscript):
            row, part, whole, others = node.value.slice, node.slice, node.value.value, []
        else:
            return False
        ends_there = self.is_begin(part) and len(others) <= self.more and all(map(_is_all, others))
        return isinstance(whole, ast.Name) and ast.unparse(row) == self.at and ends_there

    def is_begin(self, node: ast.expr) -> bool:
        """`:end`."""
        is_slice = isinstance(node, ast.Slice) and node.lower is None and node.step is None
        return is_slice and node.upper is not None and self.is_length(node.upper)  # type: ignore[attr-defined]

    def is_sample(self, node: ast.expr) -> bool:
        """A sample, all of it, or a number: `tokens`, `tokens[:end]`, `torch.tensor(tokens)`, `1`."""
        if isinstance(node, ast.Constant) or ast.unparse(node) in self.each:
            return not (isinstance(node, ast.Constant) and self.of_first)  # it has no size of its own
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            last = ast.unparse(node.func).rpartition(".")[2]
            return last in ("tensor", "LongTensor", "FloatTensor", "as_tensor", "array") and self.is_sample(
                node.args[0]
            )
        if not isinstance(node, ast.Subscript):
            return False
        part, *others = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        whole = (self.is_begin(part) or _is_all(part)) and all(map(_is_all, others))
        return whole and self.is_sample(node.value)


def _is_all(node: ast.expr) -> bool:
    return ast.unparse(node) == ":"
