"""Which functions and classes a call may call, those that take what it gives, and what it gives for a parameter."""

from __future__ import annotations

import ast

from .scopes import FUNCTIONS


def takes(parameters: ast.arguments, call: ast.Call, is_bound: bool = False) -> bool:
    """Whether a function may be called so, without a TypeError.

    Args: its parameters; the call; whether the first of them is the object whose method it is.
    """
    given = [word.arg for word in call.keywords]
    if None in given or any(isinstance(each, ast.Starred) for each in call.args):
        return True
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    needed = positional[: len(positional) - len(parameters.defaults)]
    needed += [
        each.arg for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if default is None
    ]
    count = len(call.args) + is_bound
    if count > len(positional) and parameters.vararg is None:
        return False
    known = {each.arg for each in (*parameters.args, *parameters.kwonlyargs)}
    if parameters.kwarg is None and not known.issuperset(given):
        return False
    by_place = positional[:count]
    return not set(by_place) & set(given) & known and set(needed) <= {*by_place, *given}


def needs(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, call: ast.Call, is_bound: bool) -> int:
    """How many values a function takes of a call by their places, where it takes no other number; 0 otherwise."""
    parameters = function.args
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    given = [word.arg for word in call.keywords]
    rest = 0 if parameters.vararg is None else _unpacked(function, parameters.vararg.arg)
    if (parameters.vararg is not None and not rest) or parameters.defaults or None in given:
        return 0
    return len(positional) - is_bound - len(set(positional) & set(given)) + rest


def _unpacked(function: ast.AST, name: str) -> int:
    """How many values `*args` has to be, where all that a function does with it is `x, y = args`; 0 otherwise."""
    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    taken = [each for each in ast.walk(function) if isinstance(each, ast.Assign) and each.value in uses]
    targets = taken[0].targets if len(uses) == len(taken) == 1 else []
    names = targets[0].elts if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List) else []
    return len(names) if all(isinstance(each, ast.Name) for each in names) else 0


def argument(function: ast.AST, name: str, call: ast.Call) -> ast.expr | None:
    """What a call gives for a parameter."""
    assert isinstance(function, FUNCTIONS)
    for word in call.keywords:
        if word.arg == name:
            return word.value
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return call.args[names.index(name)] if name in names and names.index(name) < len(call.args) else None
