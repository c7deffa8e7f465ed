"""Whether a function gives back the model that it is handed: `model, optimizer = load(path, model, optimizer)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..called_modules import last_name
from ..eager import is_move
from ..script import Script
from ..tree import walk
from .calls import is_without_gradients
from .program import Program
from .scopes import FUNCTIONS, bound_otherwise, parameters_of
from .signatures import argument

_AS_IT_IS = frozenset({"staticmethod", "torch.no_grad()"})  # decorators of what gives back what it returns
# What may be asked of a model that stays the same one, with the same parameters to train.
_LOADS = frozenset({"load_state_dict", "state_dict", "to", "cuda", "cpu", "train", "eval"})


def is_given_back(program: Program, script: Script, stored: ast.expr, code: str, is_followed: bool = False) -> bool:
    """Whether what a name or attribute is assigned is what it held before.

    Args: the program; the file; the target of an assignment, or the part of it, by that name; the name's code; whether
    it is known already what the function does with the model.
    """
    statement = script.statement(stored)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or ast.unparse(stored) != code:
        return False
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call):
        return False
    parts = target.elts if isinstance(target, ast.Tuple) else []
    place = parts.index(stored) if stored in parts else None
    if (place is None and target is not stored) or any(isinstance(each, ast.Starred) for each in parts):
        return False
    functions = [each for each, calls in program.followed.found.called_with.items() if (call, script) in calls]
    return len(functions) == 1 and _gives_back(functions[0], call, place, code, is_followed)


def _gives_back(function: ast.AST, call: ast.Call, place: int | None, code: str, is_followed: bool) -> bool:
    """Whether all that a function returns, or that is at that place, is the argument of that code."""
    returned = [each.value for each in walk(function) if isinstance(each, ast.Return)]
    if not isinstance(function, FUNCTIONS) or not returned:
        return False
    if is_followed and not _is_plain(function, call):
        return False
    for value in returned:
        if isinstance(value, ast.Tuple) and any(isinstance(each, ast.Starred) for each in value.elts):
            return False
        if place is not None and isinstance(value, ast.Tuple) and place < len(value.elts):
            value = value.elts[place]
        elif place is not None:
            return False
        if not isinstance(value, ast.Name) or value.id not in parameters_of(function):
            return False
        given = argument(function, value.id, call)
        if given is None or ast.unparse(given) != code or not _is_kept(function, value.id, is_followed):
            return False
    return True


def _is_plain(function: ast.AST, call: ast.Call) -> bool:
    """Whether a call by its own name gives back what a function returns, which always does return something."""
    assert isinstance(function, FUNCTIONS)
    waits = any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in walk(function))
    own = not waits and all(ast.unparse(each) in _AS_IT_IS for each in function.decorator_list)
    return (
        own and isinstance(function, ast.FunctionDef) and last_name(call.func) == function.name and _ends(function.body)
    )


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether statements end with a return on every way through them that does not raise."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, ast.Try):
        return all(map(_ends, (last.orelse or last.body, *(each.body for each in last.handlers))))
    if isinstance(last, ast.With):  # another one may suppress what is raised
        return _ends(last.body) and all(is_without_gradients(each.context_expr) for each in last.items)
    return isinstance(last, ast.Return | ast.Raise)


def _is_kept(function: ast.AST, name: str, is_followed: bool) -> bool:
    """Whether a parameter is only ever given itself, moved to a device, and what it names stays the same model."""
    moves = [
        each.targets[0]
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and is_move(each.value) and ast.unparse(each.value.func.value) == name  # type: ignore[attr-defined]
    ]
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    if is_followed:
        bound = (one for each in parents for one in bound_otherwise(each))
        stored = (each for each in parents if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load))
        return name not in bound and all(each.id != name or each in moves for each in stored)
    for each in ast.walk(function):
        if not isinstance(each, ast.Name) or each.id != name or each in moves:
            continue
        parent = parents[each]
        above = parents[parent] if isinstance(parent, ast.Tuple) else parent
        read = isinstance(above, ast.Return | ast.Compare | ast.If)
        loads = isinstance(parent, ast.Attribute) and parent.attr in _LOADS and isinstance(parent.ctx, ast.Load)
        if not isinstance(each.ctx, ast.Load) or not (read or loads):
            return False
    return True
