"""Lists of which each entry is a number of its own: `losses = [0, 0]`, then `losses[0] += loss.item()` for training and
`losses[1] += loss.item()` for an evaluation."""

from __future__ import annotations

import ast

from ..known_sampler import uses
from ..script import Script
from ..unset_sampler import is_shared

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def is_taken_by_place(script: Script, node: ast.List | ast.Tuple | ast.Set) -> bool:
    """Whether a list that is written out has a name by which nothing but its entries is read and set, each by its
    place: it keeps its length and its order, and nobody else has it."""
    target = _named(script, node)
    if target is None or is_shared(script, target.id) or _is_open(script, target):
        return False
    return all(_is_one(script, each, len(node.elts)) for each in _stands(script, target))


def _stands(script: Script, name: ast.Name) -> set[ast.Name]:
    """Where a variable of a function stands, or anything of that name in functions within it; or one of the file."""
    scope = script.scope(name)
    if isinstance(scope, ast.Module):
        return uses(script, name)
    return {each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name.id}


def _is_open(script: Script, name: ast.Name) -> bool:
    """Whether a name is one of a class, whose objects have it, too, or of a file that others may import."""
    scopes = (each for each in script.ancestors(name) if isinstance(each, ast.ClassDef | _FUNCTIONS | ast.Module))
    scope = next(scopes)
    return isinstance(scope, ast.ClassDef) or (isinstance(scope, ast.Module) and not script.is_entry)


def _named(script: Script, node: ast.AST) -> ast.Name | None:
    """The name that a list is given where it is written."""
    parent = script.parents.get(node)
    if not isinstance(node, ast.List) or not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return None
    return parent.targets[0] if isinstance(parent.targets[0], ast.Name) else None


def _is_one(script: Script, name: ast.Name, length: int) -> bool:
    """Whether a list of that length is written out for a name, or one of its entries taken or set by a number."""
    parent = script.parents[name]
    if isinstance(parent, ast.Assign):
        made = parent.value
        return _named(script, made) is name and isinstance(made, ast.List) and len(made.elts) == length
    if not isinstance(parent, ast.Subscript) or parent.value is not name or isinstance(parent.ctx, ast.Del):
        return False
    place = parent.slice.value if isinstance(parent.slice, ast.Constant) else None
    return isinstance(place, int) and not isinstance(place, bool) and 0 <= place < length
