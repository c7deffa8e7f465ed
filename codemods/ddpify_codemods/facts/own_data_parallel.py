"""The classes that a program derives from nn.DataParallel, and where it may make one: `Own(net)`, `wrap = Own`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .data_parallel import CLASSES
from .script import Script

# What only looks at a class that it is given.
_LOOK = frozenset({"isinstance", "issubclass", "super"})


def own_classes(scripts: Sequence[Script]) -> set[ast.ClassDef]:
    """The classes derived from nn.DataParallel, or from one that is."""
    classes = [(script, node) for script in scripts for node in script.find(ast.ClassDef)]
    found = {node for script, node in classes if any(script.qualified(each) in CLASSES for each in node.bases)}
    for _ in classes if found else ():
        further = {node for script, node in classes if any(_is_one(script, each, found) for each in node.bases)}
        if further <= found:
            break
        found |= further
    return found


def mentions(script: Script, own: set[ast.ClassDef]) -> Iterator[ast.expr]:
    """Where a file may make one of these classes: it names it, and not to derive from it or to ask for it."""
    if not own:
        return
    names: list[ast.Name | ast.Attribute] = [*script.find(ast.Name), *script.find(ast.Attribute)]
    for node in names:
        derives = isinstance(script.parents[node], ast.ClassDef)
        if isinstance(node.ctx, ast.Load) and _is_one(script, node, own) and not derives and not _looks(script, node):
            yield node


def called_as(script: Script, node: ast.expr) -> ast.Call | None:
    """The call of a class that is named, or of a method of its own: `Own(net)`, `Own.of(net)`."""
    parent = script.parents[node]
    while isinstance(parent, ast.Attribute):
        node, parent = parent, script.parents[parent]
    return parent if isinstance(parent, ast.Call) and parent.func is node else None


def _is_one(script: Script, node: ast.expr, own: set[ast.ClassDef]) -> bool:
    """Whether an expression names one of these classes, which a file defines itself or has from another one."""
    name = script.qualified(node).rpartition(".")[2]
    here = [each for each in script.find(ast.ClassDef) if each.name == name]
    return bool(own.intersection(here)) if here else any(each.name == name for each in own)


def _looks(script: Script, node: ast.expr) -> bool:
    """Whether it is in an annotation, or only asked for: `isinstance(model, (Own, Other))`, `type(model) is Own`."""
    for inner, outer in zip((node, *script.ancestors(node)), script.ancestors(node), strict=False):
        if isinstance(outer, ast.Call):
            return inner is not outer.func and script.qualified(outer.func) in _LOOK
        if isinstance(outer, ast.Compare):
            return True
        if isinstance(outer, ast.arg) or (isinstance(outer, ast.AnnAssign) and inner is outer.annotation):
            return True
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return inner is outer.returns
        if isinstance(outer, ast.stmt):
            return False
    return False
