"""Code that all ranks come to equally often for sure: by branches that constants and the command line decide."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ...facts.called_modules import last_name
from ...facts.effects import sample_code
from ...facts.flow.program import Program
from ...facts.flow.unequal import comes_unequally
from ...facts.header import is_in_group
from ...facts.script import Script
from .alike import is_alike
from .rank_0_alone import is_for_rank_0
from .ways import deciding

_OUTSIDE = (ast.If, ast.For, ast.Module, ast.FunctionDef)


def all_come(program: Program, script: Script, node: ast.expr | ast.stmt) -> bool:
    """Whether all ranks come to some code equally often, by what is alike on all of them."""
    waiting: list[tuple[ast.expr | ast.stmt, Script]] = [(node, script)]
    seen = set[ast.AST]()
    while waiting:
        at, there = waiting.pop()
        unequal = comes_unequally(program.followed.found, program.followed.status, there, at)
        if unequal or at in sample_code(there) or is_for_rank_0(there, at) or not is_in_group(there, at):
            return False
        if not all(is_alike(program, there, test) for test in deciding(there, at)) or not _is_outside(there, at):
            return False
        function = there.scope(at)
        if isinstance(function, ast.Module) or function in seen:
            continue
        seen.add(function)
        calls = program.followed.found.called_with.get(function, ())
        if not isinstance(function, ast.FunctionDef) or is_named(program, there, function):
            return False
        if not calls or function in there.generators or function.decorator_list:
            return False
        waiting += [(each, replace(caller, program=program)) for each, caller in calls]
    return True


def is_named(program: Program, script: Script, function: ast.FunctionDef) -> bool:
    """Whether a program names a function where it is not seen to call it, or has another one of that name."""
    owner = script.parents[function]
    name = getattr(owner, "name", "") if function.name == "__init__" else function.name
    is_method = isinstance(owner, ast.ClassDef) and name == function.name
    called = {call.func for calls in program.followed.found.called_with.values() for call, _ in calls}
    for there in program.scripts:
        defined = [each for each in there.find(ast.FunctionDef, ast.ClassDef) if each.name == name]
        if len(defined) > 1 or any(each.value == name for each in there.find(ast.Constant)):
            return True
        for node in there.find(ast.Name, ast.Attribute):
            may_be = isinstance(node, ast.Name) or is_method or _is_of_program(program, there, node)
            if node not in called and last_name(node) == name and may_be:
                return True
    imports = (alias for there in program.scripts for node in there.imports for alias in node.names)
    return any(alias.name == name and alias.asname not in (None, name) for alias in imports)


def _is_of_program(program: Program, script: Script, node: ast.Attribute) -> bool:
    """Whether an attribute may be that of a file of the program, or of the object itself: not `torch.save`."""
    owner = script.qualified(node.value)
    files = {part for each in program.scripts for part in (each.path.stem, each.path.parent.name)}
    return owner in ("self", "cls") or owner.rpartition(".")[2] in files


def _is_outside(script: Script, node: ast.AST) -> bool:
    """Whether a function, or a file, comes to a call by branches, and by loops as long as `range` says."""
    for around in _up_to(script, node):
        if not isinstance(around, _OUTSIDE):
            return False
        if isinstance(around, ast.For) and not ast.unparse(around.iter).startswith("range("):
            return False
    return True


def _up_to(script: Script, node: ast.AST) -> Iterator[ast.AST]:
    """The statements around that of a call, up to its function."""
    for around in script.ancestors(script.statement(node)):
        yield around
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return
