"""Functions that number a run's folder by those that are there: `run_dir = increment_path("runs/exp")`.

A slower rank would find the folder that a faster one has made, and number another one. Rank 0 alone calls a function
that does nothing but look at the disk, and make folders, and its answer, a text or a path, is sent: as an expert writes
it. So it is where all ranks come to each call of it, by what is alike on all of them. Elsewhere its looks are sent.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache

from ...facts.called_modules import last_name
from ...facts.devices import source
from ...facts.effects import effects, makes_folder
from ...facts.flow.program import Program
from ...facts.script import KEPT, Script
from .all_come import all_come, is_named
from .looks import LISTS, LOOKS, naming_looks
from .looks_only import looks_only, only_tells
from .names_of_folders import naming_expressions
from .words import program_of

_Call = tuple[ast.Call, Script]
_AROUND: tuple[type[ast.AST], ...] = (ast.Call, ast.keyword, ast.JoinedStr, ast.FormattedValue, ast.BinOp)
_AROUND += (ast.BoolOp, ast.Attribute, ast.Tuple, ast.IfExp)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_SAID = frozenset({"__str__", "__repr__", "__format__", "__fspath__", "__getattr__", "__getattribute__", "__truediv__"})


def numbering_calls(script: Script) -> list[ast.Call]:
    """The calls in a file that rank 0 alone makes, whose answer is sent."""
    calls = {call for each in _numbering(program_of(script)).values() for call, _ in each}
    return [call for call in script.find(ast.Call) if call in calls]


def of_numbering(program: Program) -> set[ast.AST]:
    """What rank 0 alone computes to number folders: those calls, and the functions that they call."""
    numbering = _numbering(program)
    calls = (call for each in numbering.values() for call, _ in each)
    return {part for each in (*calls, *numbering) for part in ast.walk(each)}


@lru_cache(maxsize=KEPT)
def _numbering(program: Program) -> dict[ast.FunctionDef, list[_Call]]:
    """The functions of a program that number folders, and their calls."""
    found: dict[ast.FunctionDef, list[_Call]] = {}
    if any(_SAID & each.defined for each in program.scripts):
        return found  # what is given to a function may do more than tell what it is
    for script in (replace(each, program=program) for each in program.scripts):
        for function in script.find(ast.FunctionDef):
            called = program.followed.found.called_with.get(function, ())
            calls = [(call, replace(there, program=program)) for call, there in called]
            if (
                calls
                and _is_left_to_chance(script, function)
                and looks_only(script, function)
                and not is_named(program, script, function)
                and any(call in naming_expressions(program) for call, _ in calls)
                and all(_can_be_sent(program, there, call) for call, there in calls)
            ):
                found[function] = calls
    return found


def _is_left_to_chance(script: Script, function: ast.FunctionDef) -> bool:
    """Whether a function looks at files, and not all that it looks at is sent where it does."""
    looking = LOOKS | LISTS | {"walk", "iglob", "rglob"}
    looks = {each for each in ast.walk(function) if isinstance(each, ast.Call) and last_name(each.func) in looking}
    return bool(looks) and bool(looks - {*naming_looks(script, endless=False)})


def _can_be_sent(program: Program, script: Script, call: ast.Call) -> bool:
    """Whether all ranks come to a call, and can wait there for rank 0, which alone computes what the call is given."""
    found, statement = program.followed.found, script.statement(call)
    given = [part for each in (*call.args, *call.keywords) for part in ast.walk(each)]
    for around in script.ancestors(call):
        if around is statement:
            break
        if not isinstance(around, _AROUND) or (isinstance(around, ast.Call) and not _takes_names(script, around)):
            return False
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False  # whose answer nobody takes
    return (
        isinstance(statement, _STATEMENTS)
        and only_tells(script, call)
        and not any(part in found.reductions or part in found.of_rank_0 for part in given)
        and _is_placed(script, call)
        and all_come(program, script, call)
    )


def _takes_names(script: Script, call: ast.Call) -> bool:
    """Whether all ranks make a call that is given the name of a folder: what writes may be for rank 0 alone."""
    name = script.qualified(call.func)
    own = last_name(call.func) in script.defined and call not in effects(script)
    return own or makes_folder(script, call) or name.startswith(("os.path.", "pathlib.")) or name == "str"


def _is_placed(script: Script, call: ast.Call) -> bool:
    """Whether a call is where its place says: Python 3.11 misplaces what stands in an f-string of several lines."""
    try:
        return ast.unparse(ast.parse(source(script, call).strip())) == ast.unparse(call)
    except SyntaxError:
        return False
