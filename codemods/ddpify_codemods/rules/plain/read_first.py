"""Files that all ranks read before rank 0 writes them anew: a slower rank would read what is half written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects, opened_path, reads, sample_code
from ...facts.header import is_in_group
from ...facts.script import Script
from ...rule import Insert
from ...targets import Target
from .looks import is_met_by_all
from .words import program_of

_READ = frozenset({"read_text", "read_bytes", "open"})


def waits_for_readers(script: Script, target: Target) -> Iterator[Insert]:
    """Let all ranks have read a file before it is written: `if json.load(open(best))["loss"] > loss:`, and below it."""
    of_samples, done = sample_code(script), set[ast.stmt]()
    for call in effects(script):
        statement = script.statement(call)
        if call in of_samples or statement in done or not is_in_group(script, call):
            continue
        if any(_reads(script, part, _paths(script, call)) for part in done_before(script, statement)):
            done.add(statement)
            if is_met_by_all(script, statement):
                message = "wait until all ranks have read the file"
                yield Insert(statement, target.words.barrier, message, modules=target.words.imports)


def _paths(script: Script, call: ast.Call) -> set[str]:
    """What may be the path of a file that a call writes, as code."""
    owner = opened_path(script, call)
    if owner is None and isinstance(call.func, ast.Attribute) and call.func.attr.startswith("write_"):
        owner = call.func.value
    given = [owner] if owner is not None else [*call.args, *(word.value for word in call.keywords)]
    return {ast.unparse(each) for each in given}


def done_before(script: Script, statement: ast.stmt) -> Iterator[ast.AST]:
    """What is done before a statement, back to the last loop over data, at which the ranks wait for each other."""
    loops = program_of(script).followed.found.loops
    while True:
        block = script.block(statement)
        for each in reversed(block[: block.index(statement)]):
            if any(part in loops for part in ast.walk(each)):
                return
            if not isinstance(each, ast.FunctionDef | ast.ClassDef):
                yield each
        around = script.parents[statement]
        while isinstance(around, ast.ExceptHandler | ast.match_case):
            around = script.parents[around]
        if not isinstance(around, ast.If | ast.With | ast.Try):
            return
        yield from [around.test] if isinstance(around, ast.If) else ()
        statement = around


def _reads(script: Script, node: ast.AST, paths: set[str]) -> bool:
    """Whether something reads one of some files, itself or in a function of the file that it calls."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    if any(_read_path(script, call) in paths for call in calls):
        return True
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    functions = [each for each in script.find(ast.FunctionDef) if each.name in called and each is not node]
    inner = (each for function in functions for each in ast.walk(function) if isinstance(each, ast.Call))
    return any(_read_path(script, call) in paths for call in inner)


def _read_path(script: Script, call: ast.Call) -> str:
    """The path of a file that a call reads, as code; "" for other calls."""
    if reads(script, call) and call.args:
        return ast.unparse(call.args[0])
    of_path = isinstance(call.func, ast.Attribute) and call.func.attr in _READ and call not in effects(script)
    return ast.unparse(call.func.value) if of_path else ""  # type: ignore[attr-defined]
