"""Decisions by the clock in the plain style: where ranks would wait for each other in what is shown, too."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from ...facts.called_modules import last_name
from ...facts.flow.unequal import comes_unequally
from ...facts.meters import meters
from ...facts.script import Script
from ...rule import Finding, Replace
from ..exact import clock_decisions
from .logged import is_logged
from .rank_0_alone import is_of_rank_0
from .words import program_of

_TEXTS = frozenset({"__str__", "__format__", "__repr__"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Methods of libraries that say what one process has.
_METHODS = frozenset(
    {"item", "tolist", "format", "join", "ljust", "rjust", "strftime", "isoformat", "total_seconds", "get_last_lr"}
    | {"get_lr", "get", "size", "numel", "dim", "cpu", "detach", "items", "keys", "values", "lower", "upper"}
    | {"replace", "print", "write", "flush", "info", "debug", "warning"}
)


def by_clock(script: Script) -> Iterator[Replace | Finding]:
    """Where rank 0 decides by its clock; also where all that hangs on it is to show what all ranks bring together."""

    def meets(nodes: Sequence[ast.AST]) -> bool:
        return any(_meets(script, part, together, defined) for node in nodes for part in ast.walk(node))

    together, defined = _together(script), _defined(script)
    for item in clock_decisions.decisions(script, meets, _telling(script)):
        test = item.node if isinstance(item, Replace) else None
        within = isinstance(test, ast.expr) and not isinstance(script.parents[test], ast.stmt)
        if not (within and (is_logged(script, script.statement(test)) or is_of_rank_0(script, test))):  # type: ignore[arg-type]
            yield item


def comes_apart(script: Script, test: ast.expr) -> bool:
    """Whether ranks come to a condition unequally often."""
    followed = program_of(script).followed
    around: ast.AST = test
    while isinstance(around, ast.expr):
        if around in followed.found.unequal_tests:
            return True
        around = script.parents[around]
    return comes_unequally(followed.found, followed.status, script, test)


def _together(script: Script) -> set[ast.AST]:
    """The expressions of a program that all ranks compute together."""
    program = program_of(script)
    found = program.followed.found
    read = (site.node for meter in meters(program.scripts, found) for site in meter.reads)
    return {*found.reductions, *found.of_rank_0, *found.forwards, *read}


def _meets(script: Script, node: ast.AST, together: set[ast.AST], defined: frozenset[str]) -> bool:
    """Whether ranks may wait for each other in an expression: it is brought together, or calls what the program defines
    or gets as a value.

    Args:
        together: the expressions that all ranks compute together. defined: the names of what the program defines.
    """
    if node in together:
        return True
    if isinstance(node, ast.Attribute | ast.Call):
        name = last_name(node.func) if isinstance(node, ast.Call) else node.attr
        if name in defined:
            return True
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.FormattedValue) and not _TEXTS.isdisjoint(defined)
    if isinstance(node.func, ast.Name):
        return node.func.id not in script.imported and not hasattr(builtins, node.func.id)
    root = ast.unparse(node.func).partition(".")[0]
    return root not in script.imported and last_name(node.func) not in _METHODS


def _defined(script: Script) -> frozenset[str]:
    """The names of all functions and classes of a program."""
    return frozenset().union(*(each.defined for each in program_of(script).scripts))


def _telling(script: Script) -> frozenset[str]:
    """The functions of a program that give back the time, or what they decide by it: `def is_due(self): …`; none whose
    name another function has that does not."""
    waiting = [
        (other, function.name, given)
        for other in program_of(script).scripts
        for function in other.find(*_FUNCTIONS)
        if (given := _given_back(function))
    ]
    telling = frozenset[str]()
    while True:
        left = [
            (other, name, given)
            for other, name, given in waiting
            if not any(clock_decisions.tells_time(other, value, telling) for value in given)
        ]
        if len(left) == len(waiting):
            return telling
        telling |= {name for _, name, _ in waiting} - {name for _, name, _ in left}
        waiting = left


def _given_back(function: ast.AST) -> list[ast.expr]:
    """What a function gives back, but for what is written down: `return False` of a base class."""
    values = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return [value for value in values if value is not None and not isinstance(value, ast.Constant)]
