"""Hooks of modules that leave no trace in training: they count operations, into lists of the function around them, or
keep what nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..header import main_guard
from ..script import Script

_LOOKS = frozenset({"size", "dim", "nelement", "numel", "append", "prod", "len", "int", "float", "isinstance"})
_COPIES = frozenset({"detach", "clone", "cpu", "numpy", "to", "float"})
_SUMS = frozenset({"sum", "len", "max", "min", "print", "numpy.sum", "numpy.mean"})


def only_counts(script: Script, hook: ast.AST) -> bool:
    """Whether what a hook does can be seen in nothing but lists of the function that it is defined in, which adds them
    up and does not train: the operations of one batch, as tools for pruning count them.

    Args: the file, and the hook.
    """
    around = next((each for each in script.ancestors(hook) if isinstance(each, ast.FunctionDef)), None)
    if not isinstance(hook, ast.FunctionDef) or around is None:
        return False
    parts = [part for statement in hook.body for part in ast.walk(statement)]
    if any(isinstance(node, ast.Attribute) and node.attr in ("backward", "step") for node in ast.walk(around)):
        return False
    filled = {node.func.value for node in parts if isinstance(node, ast.Call) and _appends(node)}  # type: ignore[attr-defined]
    if not all(map(_is_quiet, parts)) or not all(isinstance(each, ast.Name) for each in filled):
        return False
    names = {each.id for each in filled if isinstance(each, ast.Name)}
    uses = [node for node in ast.walk(around) if isinstance(node, ast.Name) and node.id in names]
    return all(_is_own(script, node) for node in uses) and names <= {node.id for node in uses if _is_new(script, node)}


def only_keeps(scripts: Iterable[Script], hook: ast.AST) -> bool:
    """Whether a hook does nothing but keep outputs in an attribute that no other line of a program names:
    `self.activation[name] = output.detach()`.

    Args: the program, and the hook.
    """
    if not isinstance(hook, ast.FunctionDef):
        return False
    kept: set[str] = set()
    given = {each.arg for each in hook.args.args}  # what it changes there, torch may read: `output.data = …`
    for statement in hook.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        holder = target.value if isinstance(target, ast.Subscript) else target
        value = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(holder, ast.Attribute) or value is None or not all(map(_is_copied, ast.walk(value))):
            return False
        if not isinstance(holder.value, ast.Name) or holder.value.id in given:
            return False
        kept.add(holder.attr)
    for script in scripts:
        guard = None if script.is_entry else main_guard(script.tree)
        for node in script.nodes:
            if _is_read(script, node, kept) and guard not in [*script.ancestors(node)]:
                return False
    return True


def _is_copied(node: ast.AST) -> bool:
    """Whether a part of a value is an output, or a copy of it: `output[0].detach().cpu()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Constant | ast.expr_context)


def _is_read(script: Script, node: ast.AST, names: set[str]) -> bool:
    """Whether an attribute is read, by its name or by a text, other than to put something into it."""
    if isinstance(node, ast.Constant):
        return node.value in names
    if not isinstance(node, ast.Attribute) or node.attr not in names or not isinstance(node.ctx, ast.Load):
        return False
    place = script.parents[node]
    return not (isinstance(place, ast.Subscript) and isinstance(place.ctx, ast.Store) and place.value is node)


def _appends(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "append"


def _is_quiet(node: ast.AST) -> bool:
    """Whether a part of a hook computes, and gives nothing back."""
    if isinstance(node, ast.Call):
        return (node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)) in _LOOKS
    if isinstance(node, ast.Attribute | ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Return):
        return node.value is None
    if isinstance(node, ast.AugAssign):
        return False  # of what it is given, perhaps
    return not isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Raise | ast.NamedExpr)


def _is_new(script: Script, node: ast.Name) -> bool:
    """Whether a name gets an empty list: `counts = []`."""
    assign = script.parents[node]
    return isinstance(assign, ast.Assign) and isinstance(assign.value, ast.List) and not assign.value.elts


def _is_own(script: Script, node: ast.Name) -> bool:
    """Whether a list is made, filled or added up, and goes nowhere else."""
    parent = script.parents[node]
    if isinstance(node.ctx, ast.Store):
        return _is_new(script, node)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "append"
    return isinstance(parent, ast.Call) and parent.func is not node and script.qualified(parent.func) in _SUMS
