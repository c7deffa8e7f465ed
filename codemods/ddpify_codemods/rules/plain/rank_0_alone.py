"""What rank 0 alone computes, for what it writes or logs: nothing may be sent or brought together in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ...facts.called_modules import last_name
from ...facts.effects import effects, makes_folder, opened_for_writing, opened_path, sample_code
from ...facts.loggers import loggers
from ...facts.script import KEPT, Script
from .logged import guarded, uses_of
from .words import computes_quietly, is_here, is_quiet, program_of

_VARIABLES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_of_rank_0(script: Script, node: ast.AST) -> bool:
    """Whether rank 0 alone comes to an expression."""
    alone = _of_rank_0(script)
    return node in alone or any(each in alone for each in script.ancestors(node))


def is_for_rank_0(script: Script, node: ast.AST) -> bool:
    """Whether rank 0 alone comes to an expression, or to the function that it stands in."""
    return is_of_rank_0(script, node) or is_called_by_rank_0(script, node)


def is_called_by_rank_0(script: Script, node: ast.AST) -> bool:
    """Whether rank 0 alone calls the function that an expression stands in."""
    return _is_called_alone(script, script.scope(node), frozenset())


def is_bound_within(script: Script, node: ast.AST) -> bool:
    """Whether an expression has variables of a comprehension or a lambda around it, which no line before knows."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    bound: set[str] = set()
    for around in script.ancestors(node):
        if isinstance(around, ast.stmt):
            break
        for part in ast.walk(around) if isinstance(around, _VARIABLES) else ():
            bound |= {part.arg} if isinstance(part, ast.arg) else set()
            bound |= {part.id} if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) else set()
    return bool(names & bound)


def saved_to(call: ast.Call) -> ast.expr | None:
    """Where torch.save writes what all ranks compute; None for what is not said."""
    return next((word.value for word in call.keywords if word.arg == "f"), None) or [*call.args, None, None][1]


def puts_together(script: Script, call: ast.Call) -> bool:
    """Whether all ranks have to compute what is saved, since each has a part of the model."""
    inner = (each.func for each in ast.walk(call) if isinstance(each, ast.Call))
    return program_of(script).fully_sharded and any(last_name(func) == "state_dict" for func in inner)


def given_to(script: Script, call: ast.Call) -> Iterator[tuple[int, ast.expr, bool]]:
    """What a call is given that only rank 0 makes: the place in the source, and whether all ranks compute it before."""
    given = sorted(
        [*call.args, *(word.value for word in call.keywords)], key=lambda each: (each.lineno, each.col_offset)
    )
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    parts = [(-1, owner)] if owner is not None and not script.qualified(owner) else []
    parts += enumerate(given)
    last = max((place for place, part in parts if not computes_quietly(script, part)), default=-2)
    for place, part in parts:
        yield place, part, place <= last and any(isinstance(each, ast.Call) for each in ast.walk(part))


def _is_called_alone(script: Script, function: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether nothing of the program but what rank 0 alone computes in this file calls a function, or names it."""
    program = program_of(script)
    called_with = program.followed.found.called_with
    calls = called_with.get(function, ())
    name = getattr(function, "name", "")
    if not calls or function in seen or name.startswith("__"):
        return False
    uses = {
        each
        for other in program.scripts
        for each in other.find(ast.Name, ast.Attribute)
        if last_name(each) == name and ast.unparse(each).partition(".")[0] not in {*other.imported} - {name}
    }
    called = {call.func for every in called_with.values() for call, _ in every}
    return uses <= called and all(
        is_here(script, there)
        and (is_of_rank_0(script, call) or _is_called_alone(script, script.scope(call), seen | {function}))
        for call, there in calls
    )


@lru_cache(maxsize=KEPT)
def _of_rank_0(script: Script) -> frozenset[ast.AST]:
    """What rank 0 alone comes to: statements, calls and parts of them."""
    of_samples = sample_code(script)
    alone: set[ast.AST] = {call for calls in loggers(script).values() for call in calls}
    for call in effects(script):
        if call not in alone and call not in of_samples:
            alone |= {*_written(script, call)}
    return frozenset(alone | {script.statement(node) for name in guarded(script) for node in uses_of(script, name)})


def _written(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    """What of a call that writes is for rank 0 alone (DDP607)."""
    path = opened_for_writing(script, call) or opened_path(script, call)
    if path is not None:
        yield path
    elif makes_folder(script, call) or not isinstance(script.parents[call], ast.Expr):
        return
    elif is_quiet(script, call) and not puts_together(script, call):
        yield call
    elif script.qualified(call.func) == "torch.save" and (place := saved_to(call)) is not None:
        yield place
    else:
        yield from (part for _, part, is_before in given_to(script, call) if not is_before)
