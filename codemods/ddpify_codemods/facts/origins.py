"""Where a value comes from: through names, attributes, parameters and the functions of the same file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from .bindings import arguments, attribute_bindings, bindings
from .script import KEPT, Script
from .tree import walk

_DEPTH = 8  # names on the way; a loop of names ends here
PASSES_ON = ("enumerate", "iter", "islice", "tqdm", "trange", "zip")  # what they give back is what they were given
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def origins(script: Script, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.expr]:
    """The expressions that a value may have been made by, itself included.

    Args: the file; the expression; how many names to follow.
    Yields calls, constants and other expressions, the nearest first. A loop variable comes from what is looped over,
    a parameter from what the callers in this file hand over, a call of a function of this file from what it returns.
    """
    found, nearest = {node}, [node]
    while nearest:
        yield from nearest
        values = [value for each in nearest for value in sources(script, each)] if depth else []
        nearest = [value for value in dict.fromkeys(values) if value not in found]
        found.update(nearest)
        depth -= 1


def origins_beyond(
    script: Script, node: ast.expr, beyond: Callable[[ast.expr], Iterable[ast.expr]]
) -> Iterator[ast.expr]:
    """The expressions that a value may have been made by, and those of what these are parts of, each once.

    Args: the file; the expression; what an expression is a part of, `Path(a)` of `Path(a) / "b"`.
    """
    waiting, seen = [node], set[ast.expr]()
    while waiting:
        for each in origins(script, waiting.pop()):
            if each not in seen:
                seen.add(each)
                yield each
                waiting += beyond(each)


def sources(script: Script, node: ast.expr) -> list[ast.expr]:
    """The expressions that a value was made by, one step back: what is assigned, handed over or returned."""
    if isinstance(node, ast.Name):
        return _of_name(script, node)
    if isinstance(node, ast.Attribute):
        return list(attribute_bindings(script).get(ast.unparse(node), []))
    if isinstance(node, ast.Call):
        return list(node.args) if _last(node.func) in PASSES_ON else _returned(script, node)
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def _of_name(script: Script, name: ast.Name) -> list[ast.expr]:
    scope = script.scope(name)
    found = bindings(script, scope).get(name.id, [])
    if not found and isinstance(scope, _Function) and name.id in arguments(scope):
        return passed(script, scope, name.id)
    return list(found or bindings(script, script.tree).get(name.id, []))


def assigned(script: Script, name: ast.Name) -> list[ast.expr]:
    """What a name is assigned in the function that reads it, or in the file; empty where it may be anything else.

    What callers hand over is none of it: those of other files are not seen here.
    """
    scope = script.scope(name)
    stored = _stores(script, scope, name.id)
    if not stored and name.id not in arguments(scope):
        stored = _stores(script, script.tree, name.id)
    known = name.id not in arguments(scope) and all(isinstance(each, ast.Assign) for each in stored)
    return [each.value for each in stored if isinstance(each, ast.Assign)] if known else []


def _stores(script: Script, scope: ast.AST, name: str) -> list[ast.AST]:
    """The statements by which a scope stores a name."""
    return [
        script.parents[node]
        for node in script.find(ast.Name)
        if node.id == name and not isinstance(node.ctx, ast.Load) and script.scope(node) is scope
    ]


def passed(script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str) -> list[ast.expr]:
    """What the callers in this file hand over for a parameter of a function, method or constructor."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    owner = script.parents[function]
    called = owner.name if isinstance(owner, ast.ClassDef) and function.name == "__init__" else function.name
    if isinstance(owner, ast.ClassDef):
        names = names[1:]
    found = []
    for call in _calls(script).get(called, ()):
        found += [keyword.value for keyword in call.keywords if keyword.arg == parameter]
        if parameter in names and names.index(parameter) < len(call.args):
            found.append(call.args[names.index(parameter)])
    return found


@lru_cache(maxsize=KEPT)
def _calls(script: Script) -> Mapping[str, list[ast.Call]]:
    """The calls of a file, by the last name of what is called."""
    found: dict[str, list[ast.Call]] = {}
    for call in script.find(ast.Call):
        found.setdefault(_last(call.func), []).append(call)
    return found


@lru_cache(maxsize=KEPT)
def _results(script: Script) -> Mapping[str, list[ast.expr]]:
    """What the functions of a file return, by their names."""
    found: dict[str, list[ast.expr]] = {}
    for function in script.find(ast.FunctionDef):
        values = (node.value for node in walk(function) if isinstance(node, ast.Return) and node.value is not None)
        found.setdefault(function.name, []).extend(values)
    return found


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _returned(script: Script, call: ast.Call) -> list[ast.expr]:
    if not isinstance(call.func, ast.Name):
        return []
    return list(_results(script).get(call.func.id, ()))
