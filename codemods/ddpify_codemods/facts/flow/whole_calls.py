"""Functions that training and an undivided evaluation measure with: those of training get the batch of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..script import Script
from .frames import FlowFacts
from .held_values import local_entries
from .values import ADDITIVE, LOCAL_ROWS, Function, Items, Value

_DEPTH = 4  # of the functions that are called in each other


def measures(function: Value, given: list[Value], found: Value) -> Function | None:
    """The program's function that makes numbers of samples, or nothing; None for another one."""
    functions = [thing for thing in function.things if isinstance(thing, Function)]
    alone = len(functions) == len(function.things) == 1 and not isinstance(functions[0].node, ast.Lambda)
    has_rows = any(value.kind in LOCAL_ROWS for value in given)
    lists = all(isinstance(thing, Items) for thing in found.things)
    gives = found.kind in ("same", *ADDITIVE) and lists and not local_entries(found)
    return functions[0] if alone and has_rows and gives else None


def shows_each(function: Value, given: list[Value], found: Value) -> ast.AST | None:
    """The program's function that is given samples and gives back none, as one that draws each: `for series in batch`;
    None for another one."""
    functions = [thing for thing in function.things if isinstance(thing, Function)]
    alone = len(functions) == len(function.things) == 1 and not isinstance(functions[0].node, ast.Lambda)
    has_rows = any(value.kind in LOCAL_ROWS for value in given)
    return functions[0].node if alone and has_rows and not (found.is_local or local_entries(found)) else None


def given_whole(found: FlowFacts) -> set[ast.expr]:
    """The calls in training of functions in which samples are read, of training and of an evaluation that is not
    divided: what brings them together within would do so in the evaluation, too."""
    read = (node for node in found.reductions.keys() & found.read_same if _is_of_samples(found, node))
    functions = {found.scripts[node].scope(node) for node in read}
    return {call for function in functions for call in found.measuring.get(function, ())}


def _is_of_samples(found: FlowFacts, node: ast.expr) -> bool:
    return any(each.kind in ("rows", "sum") for each in found.reductions[node])


def of_all(value: Value) -> Value:
    """A batch of all ranks, in the place of this rank's."""
    return Value(host=value.host, dimensions=value.dimensions, whole=True) if value.is_local else value


def changes_parameters(given: Function, found: FlowFacts, is_method: bool = False) -> bool:
    """Whether a function, or one that it calls, may change what it is given in place.

    is_method: whether its first parameter is the object that it is called on, which is no copy: that may get other
    attributes, and add to those that are not given a value here, and so are none of what is given.
    """
    function = given.node
    inner = _with_inner(function, found, _DEPTH)
    given_here = _given_values(inner)
    changed = _added_to({function, *found.called_with}) | _set_by_methods(given.script)
    if is_method and not _kept_parameters(inner).isdisjoint(changed):
        return True
    return _changes(function, found, is_method, given_here, _DEPTH)


def _changes(function: ast.AST, found: FlowFacts, is_method: bool, given_here: set[str], depth: int) -> bool:
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    parts = [*ast.walk(function)]
    this = function.args.args[0].arg if is_method and function.args.args else ""
    own = {part for part in parts if isinstance(part, ast.Attribute) and ast.unparse(part.value) == this}
    for part in parts:
        changed: ast.expr | None = None
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            changed = None if part in own else part.value
        elif isinstance(part, ast.AugAssign):
            added = part.target.attr if isinstance(part.target, ast.Attribute) and part.target in own else ""
            changed = None if added and added not in given_here else part.target
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            changed = part.func.value
        if changed is not None and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(changed)):
            return True
    if depth == 0:
        return True
    for inner, several in found.called_with.items():
        calls = [call for call, _ in several if call in parts] if inner is not function else []
        if calls and _changes(inner, found, _is_own(inner, calls, this), given_here, depth - 1):
            return True
    return False


def _with_inner(function: ast.AST, found: FlowFacts, depth: int) -> set[ast.AST]:
    """A function, and those that are called in it."""
    parts = {*ast.walk(function)}
    calls = found.called_with.items() if depth else ()
    inner = [other for other, several in calls if other is not function and any(call in parts for call, _ in several)]
    return {function}.union(*(_with_inner(each, found, depth - 1) for each in inner))


def _given_values(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that are given a value in some functions, but for those that something is added to."""
    parts = [part for function in functions for part in ast.walk(function)]
    added = {part.target for part in parts if isinstance(part, ast.AugAssign)}
    return {
        part.attr
        for part in parts
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) and part not in added
    }


def _kept_parameters(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that functions set to a parameter, or to what may be a view of one: `self.kept = out.detach()`."""
    found: set[str] = set()
    for function in functions:
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        for part in ast.walk(function):
            value = part.value if isinstance(part, ast.Assign | ast.AnnAssign) else None
            if value is None or isinstance(value, ast.BinOp | ast.UnaryOp | ast.Compare):
                continue
            if any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(value)):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]  # type: ignore[attr-defined]
                found |= {
                    each.attr for target in targets for each in ast.walk(target) if isinstance(each, ast.Attribute)
                }
    return found


def _set_by_methods(script: Script) -> set[str]:
    """The properties of a file's classes that can be set: `@last.setter`."""
    decorated = ((each, mark) for each in script.find(ast.FunctionDef) for mark in each.decorator_list)
    return {each.name for each, mark in decorated if isinstance(mark, ast.Attribute) and mark.attr == "setter"}


def _added_to(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that functions change in place: `self.kept *= 2`, `self.kept[0] = 0`, `self.kept.zero_()`."""
    found: set[str] = set()
    for part in (each for function in functions for each in ast.walk(function)):
        changed: ast.expr | None = None
        if isinstance(part, ast.AugAssign):
            changed = part.target
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            changed = part.func.value
        if changed is not None:
            found |= {each.attr for each in ast.walk(changed) if isinstance(each, ast.Attribute)}
    return found


def _is_own(function: ast.AST, calls: Iterable[ast.Call], this: str) -> bool:
    """Whether a function is a method of the same object in some calls: `self.reset()`."""
    return not getattr(function, "decorator_list", [function]) and all(
        isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == this for call in calls
    )
