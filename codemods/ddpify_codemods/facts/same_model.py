"""Whether two expressions of a hand-written script are one model: by name, or by the call that makes it."""

from __future__ import annotations

import ast

from .eager import is_move, is_wrapper_call
from .origins import origins, sources
from .script import Script


def is_same_model(script: Script, base: ast.expr, model: ast.expr, wrapper: str) -> bool:
    """Whether what an optimizer trains is the model that is wrapped.

    Args: the file; what the parameters are of; the model; what the wrapper is called.
    """
    here = isinstance(base, ast.Attribute) or script.scope(base) is script.scope(model)
    if here and ast.unparse(base).removesuffix(".module") in (wrapper, ast.unparse(model)):
        return True
    return bool(_made(script, model)) and _made(script, base) == _made(script, model)


def _made(script: Script, node: ast.expr, depth: int = 4) -> set[ast.expr]:
    """The calls that make a model, before it is moved to its device; none where something else may."""
    found: set[ast.expr] = set()
    for each in origins(script, node):
        parts = _unpacked(script, each)
        if is_move(each) and isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            parts = [each.func.value]
        if parts and depth:
            found |= set().union(*(_made(script, part, depth - 1) for part in parts))
        elif not sources(script, each) and not is_wrapper_call(script, each) and not isinstance(each, ast.Tuple):
            found.add(each)
    return found if all(isinstance(each, ast.Call) for each in found) else set()


def _unpacked(script: Script, name: ast.expr) -> list[ast.expr]:
    """What a name stands for that is one of several which a function of the file returns: `data, model = load()`."""
    for statement in script.find(ast.Assign) if isinstance(name, ast.Name) else ():
        names = statement.targets[0]
        if not isinstance(names, ast.Tuple) or script.scope(statement) is not script.scope(name):
            continue
        places = [place for place, each in enumerate(names.elts) if ast.unparse(each) == ast.unparse(name)]
        returned = sources(script, statement.value)
        if len(places) == 1 and returned and all(isinstance(each, ast.Tuple) for each in returned):
            return [each.elts[places[0]] for each in returned if isinstance(each, ast.Tuple)]
    return []
