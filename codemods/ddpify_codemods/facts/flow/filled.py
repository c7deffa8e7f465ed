"""Samples that a collate function pads in a loop: it makes a tensor as long as the longest of them, and writes each to
the beginning of its row."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script

_FILLS = {"torch.zeros": "0", "torch.ones": "1", "numpy.zeros": "0", "numpy.ones": "1"}
_OF_ANY_TYPE = frozenset({"long", "int", "float", "bool", "double", "astype", "type", "to"})


def filled(script: Script, function: ast.AST, node: ast.Assign) -> tuple[str, ast.expr, ast.For] | None:
    """The list of samples, what they are padded with, and the loop that writes them to a tensor that is made here:
    `padded = torch.zeros(len(texts), max(lengths))`; None for others."""
    target = node.targets[0]
    sizes, value = _made(script, node.value)
    if not isinstance(target, ast.Name) or len(sizes) != 2 or value is None:
        return None
    samples = _measured(sizes[0])
    stored = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id]
    if not samples or len([each for each in stored if isinstance(each.ctx, ast.Store)]) != 1:
        return None
    if not is_longest(function, sizes[1], samples):
        return None
    loops = [each for each in getattr(function, "body", ()) if isinstance(each, ast.For) and _writes(each, target.id)]
    if len(loops) != 1 or not _fills(function, loops[0], target.id, samples):
        return None
    return samples, value, loops[0]


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
    """The name of what `len(…)` is asked of; "" for others."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return node.args[0].id if isinstance(node.args[0], ast.Name) else ""
    return ""


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


def _fills(function: ast.AST, loop: ast.For, name: str, samples: str) -> bool:
    """Whether a loop writes each sample to the beginning of its row, as long as it is, and does nothing else."""
    over, target = loop.iter, loop.target
    numbered = ast.unparse(over) == f"enumerate({samples})"
    if not numbered or not isinstance(target, ast.Tuple) or loop.orelse:
        return False
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    if len(names) != 2:
        return False
    (at, each), ends = names, {f"len({names[1]})"}
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        to, value = statement.targets[0], statement.value
        if isinstance(to, ast.Name) and _is_length(function, value, at, ends, samples):
            ends.add(to.id)
            continue
        bounds = [part.upper for part in ast.walk(value) if isinstance(part, ast.Slice) and part.upper is not None]
        known = {ast.unparse(each) for each in bounds if _is_length(function, each, at, ends, samples)}
        if not _is_row(to, at, ends, function, samples) or not _is_sample(value, each, known):
            return False
    return True


def _is_length(function: ast.AST, node: ast.expr, at: str, ends: set[str], samples: str) -> bool:
    """`len(each)`, `lengths[i]`."""
    if ast.unparse(node) in ends:
        return True
    own = isinstance(node, ast.Subscript) and ast.unparse(node.slice) == at
    return isinstance(node, ast.Subscript) and own and _are_lengths(function, node.value, samples)


def _is_row(node: ast.expr, at: str, ends: set[str], function: ast.AST, samples: str) -> bool:
    """`padded[i, :end]`, or `padded[i][:end]`."""
    if not isinstance(node, ast.Subscript):
        return False
    if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        row, part, whole = node.slice.elts[0], node.slice.elts[1], node.value
    elif isinstance(node.value, ast.Subscript):
        row, part, whole = node.value.slice, node.slice, node.value.value
    else:
        return False
    if not isinstance(part, ast.Slice) or part.lower is not None or part.step is not None or part.upper is None:
        return False
    ends_there = _is_length(function, part.upper, at, ends, samples)
    return isinstance(whole, ast.Name) and isinstance(row, ast.Name) and row.id == at and ends_there


def _is_sample(node: ast.expr, each: str, ends: set[str]) -> bool:
    """A sample, all of it, or a number: `tokens`, `tokens[:end]`, `torch.tensor(tokens)`, `1`."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        last = ast.unparse(node.func).rpartition(".")[2]
        return last in ("tensor", "LongTensor", "FloatTensor", "as_tensor", "array") and _is_sample(
            node.args[0], each, ends
        )
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        part = node.slice
        whole = part.lower is None and part.step is None and part.upper is not None and ast.unparse(part.upper) in ends
        return whole and _is_sample(node.value, each, ends)
    return isinstance(node, ast.Name) and node.id == each
