"""What is printed to sys.stderr: by its name, by a name for it, or by an attribute that an object was given it for."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .bindings import attribute_bindings, bindings
from .called_modules import last_name
from .script import Script

_DEPTH = 4


def is_stderr(scripts: Sequence[Script], script: Script, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether an expression is sys.stderr in any case."""
    if script.qualified(node) == "sys.stderr":
        return True
    if not depth or not isinstance(node, ast.Name | ast.Attribute):
        return False
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        stored = (
            attribute_bindings(script).get(ast.unparse(node), []) if own and _is_set_here(scripts, script, node) else []
        )
        return bool(stored) and all(is_stderr(scripts, script, each, depth - 1) for each in stored)
    scope = script.scope(node)
    stored = bindings(script, scope).get(node.id, [])
    if isinstance(scope, ast.Module) or stored:
        known = {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)}
        return node.id not in known and bool(stored) and all(is_stderr(scripts, script, x, depth - 1) for x in stored)
    return _is_default(scripts, script, scope, node.id)


def _is_set_here(scripts: Sequence[Script], script: Script, node: ast.Attribute) -> bool:
    """Whether an object itself sets an attribute, and nobody else."""
    stores = ((other, each) for other in scripts for each in other.find(ast.Attribute) if each.attr == node.attr)
    return not any(
        not isinstance(each.ctx, ast.Load) and (other.path != script.path or ast.unparse(each) != ast.unparse(node))
        for other, each in stores
    )


def _is_default(
    scripts: Sequence[Script], script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> bool:
    """Whether a parameter is sys.stderr unless it is given, and never is."""
    known = [*function.args.posonlyargs, *function.args.args]
    by_place = dict(zip(reversed(known), reversed(function.args.defaults), strict=False))
    by_name = dict(zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True))
    default = next((value for each, value in {**by_place, **by_name}.items() if each.arg == name), None)
    if default is None or script.qualified(default) != "sys.stderr":
        return False
    parent = script.parents[function]
    called = parent.name if isinstance(parent, ast.ClassDef) and function.name == "__init__" else function.name
    place = next((at for at, each in enumerate(known) if each.arg == name), len(known))
    place -= isinstance(parent, ast.ClassDef)
    calls = (call for each in scripts for call in each.find(ast.Call) if last_name(call.func) in (called, "super"))
    return not any(
        len(call.args) > place
        or any(isinstance(each, ast.Starred) for each in call.args)
        or any(word.arg in (name, None) for word in call.keywords)
        for call in calls
    )
