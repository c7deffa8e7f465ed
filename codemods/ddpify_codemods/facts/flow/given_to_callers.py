"""Models that a function makes with their optimizers, and gives to its callers: `model, optimizer = create()`."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import Any

from ..all_ways import in_other_branch
from ..eager import is_move
from ..optimizers import Optimizer
from ..script import Script
from ..trained_modules import Base
from ..tree import walk
from .given_back import is_given_back
from .grown_models import may_grow
from .models_of_optimizers import Bases
from .other_names import is_for_several
from .program import Program
from .scopes import FUNCTIONS, binder_of, bound_otherwise, class_around, parameters_of
from .wrapped_names import sets_mode

_WHOLE = -1  # the place of what is all that a function returns


def given_to_callers(program: Program, bases: Bases) -> Bases:
    """The models as those name them that are given them, each with the statement that takes it, which stands for an
    optimizer of what the function calls the model; none where no function gives one back, or where a caller may give
    that name to another one, or the model other layers."""
    found: Bases = []
    for each in () if program.fully_sharded else bases:
        script, optimizer, base = each
        function = script.scope(optimizer.call)
        place = _place(script, function, base)
        taken = [each] if place is None else _taken_by_callers(program, function, place, optimizer, base)
        if not taken:
            return []
        found += [one for one in taken if all(one[2].node is not other.node for _, _, other in found)]
    return found if found != bases and _keep_their_names(program, found) and not _may_grow(program, found) else []


def _taken_by_callers(program: Program, function: ast.AST, place: int, optimizer: Optimizer, base: Base) -> Bases:
    found: Bases = []
    of, given_by = optimizer.bases if optimizer.given_by else (base,), (*optimizer.given_by, function)
    calls = program.followed.found.called_with.get(function, set())
    for call, caller in sorted(calls, key=lambda each: (str(each[1].path), each[0].lineno)):
        taken = _taken(caller, call, place)
        if taken is None or function in caller.ancestors(call):
            return []
        statement: Any = caller.statement(call)
        found.append((caller, Optimizer(statement, of, False, given_by), Base(taken.id, taken)))
    return found


def _place(script: Script, function: ast.AST, base: Base) -> int | None:
    """Where a variable of a function is in all that it returns: its place in a tuple, or that of the whole; None where
    some returns leave it out."""
    name = base.node
    if not isinstance(function, FUNCTIONS) or function.decorator_list or not isinstance(name, ast.Name):
        return None
    if binder_of(script, name) is not function or name.id in parameters_of(function):
        return None
    places: set[int] = set()
    for each in walk(function):
        if isinstance(each, ast.Return) and script.scope(each) is function:
            parts = each.value.elts if isinstance(each.value, ast.Tuple) else [each.value]
            at = [place for place, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name.id]
            if len(at) != 1 or any(isinstance(part, ast.Starred) for part in parts):
                return None
            places.add(at[0] if isinstance(each.value, ast.Tuple) else _WHOLE)
    return places.pop() if len(places) == 1 else None


def _taken(script: Script, call: ast.Call, place: int) -> ast.Name | None:
    """The variable of a function, or of a file, that a call gives what is at a place of its result."""
    assign = script.parents[call]
    target = assign.targets[0] if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None
    if place != _WHOLE:
        parts = target.elts if isinstance(target, ast.Tuple) else []
        whole = place < len(parts) and not any(isinstance(part, ast.Starred) for part in parts)
        target = parts[place] if whole else None
    if not isinstance(target, ast.Name) or binder_of(script, target) is not script.scope(target):
        return None
    return None if class_around(script, target) is not class_around(script, script.scope(target)) else target


def _keep_their_names(program: Program, bases: Bases) -> bool:
    """Whether the variables that take models hold nothing else, beside these models moved."""
    takes = [(script, base.node) for script, by, base in bases if by.given_by]
    names = [(script, name, binder_of(script, name)) for script, name in takes if isinstance(name, ast.Name)]
    alike = ((script, name.id, binder) for script, name, binder in names)
    return all(
        _holds_one(program, script, binder, [one for _, one, other in names if other is binder and one.id == name])
        for script, name, binder in dict.fromkeys(alike)
    )


def _may_grow(program: Program, bases: Bases) -> bool:
    """Whether models may get layers, or their optimizers parameters, behind the statements that take them."""
    takes = [(script, by, base.node) for script, by, base in bases if by.given_by]
    made_in = {function for _, by, _ in takes for function in by.given_by}
    made_in |= {script.scope(call) for call, script in program.followed.found.optimizer_calls.items()}
    made_in -= {script.scope(by.call) for script, by, _ in takes}
    names = {(binder_of(script, name), name.id) for script, _, name in takes if isinstance(name, ast.Name)}
    return may_grow(program, frozenset(names), frozenset(made_in))


def _holds_one(program: Program, script: Script, binder: ast.AST, takes: Sequence[ast.Name]) -> bool:
    """Whether each way through a function, or a file, gives a name one of some models alone."""
    name = takes[0].id
    if any(not in_other_branch(script, *pair) for pair in itertools.combinations(takes, 2)):
        return False
    for node in ast.walk(binder):
        if name in bound_otherwise(node):
            return False
        if not isinstance(node, ast.Name) or node.id != name or isinstance(node.ctx, ast.Load) or node in takes:
            continue
        if binder_of(script, node) is binder and not _stays(program, script, node):
            return False
    return True


def _stays(program: Program, script: Script, stored: ast.Name) -> bool:
    """Whether a name is given what it holds: `model = model.to(device)`."""
    statement = script.statement(stored)
    if not isinstance(statement, ast.Assign):
        return False
    if is_given_back(program, script, stored, stored.id):
        return True
    value, alone = statement.value, statement.targets == [stored]
    moved = is_move(value) and ast.unparse(value.func.value) == stored.id  # type: ignore[attr-defined]
    return alone and (moved or sets_mode(value, stored.id) or is_for_several(value, stored.id))
