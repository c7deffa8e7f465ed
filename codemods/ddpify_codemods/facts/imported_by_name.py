"""Modules that are imported by a name: `importlib.import_module("models." + name)`, and what is taken of them."""

from __future__ import annotations

import ast
import re

from .tree import Tree, index


def imports_by_name(call: ast.Call) -> bool:
    """Whether a call is `importlib.import_module(…)` or `__import__(…)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("import_module", "__import__") and bool(call.args)


def pattern(node: ast.expr) -> str:
    """The name of a module as far as the source says it: "models.*" for `"models." + name`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and node.id in ("__package__", "__name__"):
        return ""  # what follows begins with a dot
    if isinstance(node, ast.JoinedStr):
        return "".join(pattern(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return pattern(node.left) + pattern(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return re.sub(r"%[sdr]", "*", pattern(node.left))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return re.sub(r"\{[^}]*\}", "*", pattern(node.func.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
        parts = node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else []
        return pattern(node.func.value).join(map(pattern, parts)) if parts else "*"
    return "*"


def attributes_of(tree: ast.Module, call: ast.Call) -> frozenset[str]:
    """What a file takes of what a call gives: `net = import_module(name)`, `net.get_model()`."""
    there = index(tree)
    parent = there.parents[call]
    if isinstance(parent, ast.Attribute):
        return frozenset({parent.attr})
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return frozenset()
    attributes = [node for node in there.nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    taken = [node for node in attributes if ast.unparse(node.value) == target.id]
    return frozenset(node.attr for node in taken if _function(there, node) is _function(there, call))


def _function(tree: Tree, node: ast.AST) -> ast.AST | None:
    while node in tree.parents and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node = tree.parents[node]
    return node


def defines(tree: ast.Module, names: frozenset[str]) -> bool:
    """Whether a file has functions or classes, or variables, of all of some names; it may have what it takes all of
    from another file."""
    known: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Assign):
            known |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names}
    return names <= known or "*" in known
