"""Functions that training and an undivided evaluation measure with: those of training get the batch of all ranks."""

from __future__ import annotations

import ast

from .frames import FlowFacts, local_entries
from .values import ADDITIVE, LOCAL_ROWS, Function, Items, Value


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


def changes_parameters(function: ast.AST, found: FlowFacts, depth: int = 4) -> bool:
    """Whether a function, or one that it calls, may change what it is given in place."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    parts = [*ast.walk(function)]
    for part in parts:
        changed: ast.expr | None = None
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.AugAssign):
            changed = part.target
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            changed = part.func.value
        if changed is not None and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(changed)):
            return True
    inner = (other for other, calls in found.called_with.items() if any(call in parts for call, _ in calls))
    return depth == 0 or any(changes_parameters(each, found, depth - 1) for each in inner if each is not function)
