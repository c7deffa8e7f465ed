"""What takes a model before it is wrapped: an evaluation of what it gives before training, by a function that training
calls, too."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator

from ..script import Script
from .frames import Problem
from .program import Program
from .wrapped_names import Wrapped, Wrapping

_ALSO_LATER = "this is called before `{0}` is wrapped, where its optimizer is made, and behind that as well"
_TRAINS = (
    "this may train `{0}` before it is wrapped, where its optimizer is made: its gradients would be those of each rank"
)
_TAKES_OUT = (
    "this gets `{0}` before it is wrapped, where its optimizer is made, and reads more of it than its wrapper has"
)


def keep_bare(program: Program, result: Wrapping) -> Iterator[Problem]:
    """Let a call that comes before the wrapper, and does not train, take the model itself."""
    of = {(each.script, each.name): each for each in result.models}
    for node, called in list(result.calls.items()):
        script, model = called[0], of.get(called)
        call = next((each for each in script.ancestors(node) if isinstance(each, ast.Call)), None)
        if model is None or call is None or not (when := _early(program, script, call, model)):
            continue
        inside = [*_inside(program, call, script)]
        if when == "also later":
            message = _ALSO_LATER
        elif call.func is node or _trains_before(program, inside, model):
            message = _TRAINS
        elif not result.modules.keys().isdisjoint(inside):
            message = _TAKES_OUT
        else:
            del result.calls[node]
            continue
        yield Problem(script, call, message.format(model.model))


def _early(program: Program, script: Script, call: ast.Call, model: Wrapped) -> str:
    """Whether a call comes before the wrapper of a model: "always", "also later", or "" where it does not."""
    if script is model.script:
        here = [at for at in model.at if script.scope(at) is script.scope(call)]
        inside = {part for at in here for part in ast.walk(at)}
        if here and call not in inside and all(call.lineno < at.lineno for at in here):
            return "always"
        if here:
            return ""
    made = begins(program, model)
    first, last = program.followed.found.visits.get(call, (math.inf, math.inf))
    return "" if first >= made else "always" if last < made else "also later"


def begins(program: Program, model: Wrapped) -> int:
    """When the program comes to the first wrapper of a model."""
    visits = program.followed.found.visits
    made = (visits[each] for at in model.at for each in ast.walk(at) if isinstance(each, ast.Call) and each in visits)
    return min((first for first, _ in made), default=0)


def _trains_before(program: Program, parts: Collection[ast.AST], model: Wrapped) -> bool:
    """Whether some parts of functions train, and the program comes to that before the wrapper of a model."""
    found, made = program.followed.found, begins(program, model)
    trains = found.training_statements.intersection(parts)
    calls = (part for each in trains for part in ast.walk(each) if isinstance(part, ast.Call))
    return any(found.visits.get(each, (made, 0))[0] < made for each in calls)


def _inside(program: Program, call: ast.Call, script: Script) -> Iterator[ast.AST]:
    """The parts of the functions that a call comes to."""
    waiting, seen = [(call, script)], set[ast.AST]()
    while waiting:
        each = waiting.pop()
        for function, calls in program.followed.found.called_with.items():
            if each in calls and function not in seen:
                seen.add(function)
                there = next(one for one in program.scripts if function in one.parents)
                parts = [*ast.walk(function)]
                waiting += [(part, there) for part in parts if isinstance(part, ast.Call)]
                yield from parts
