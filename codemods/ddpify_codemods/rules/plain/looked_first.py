"""Files that all ranks look for before rank 0 writes them: a slower rank would find what is written already.

Where the look stands in the condition itself, rank 0 looks for all (DDP614). A function that looks, or a name for what
was found, may be met on other ways too. There all ranks look: they find the same, as long as none writes, so they wait
for each other before one does. Not behind an exception, which one rank may meet alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ...facts.called_modules import last_name
from ...facts.effects import effects, makes_folder, reads, sample_code
from ...facts.flow.program import Program
from ...facts.flow.unequal import comes_unequally
from ...facts.header import is_in_group
from ...facts.origins import origins
from ...facts.own_methods import is_own_module
from ...facts.same_file import may_be_read_by, writes_a_file
from ...facts.script import KEPT, Script
from ...facts.tree import walk
from ...rule import Insert
from ...targets import Target
from .looks import LISTS, LOOKS, decisive_looks, is_met_by_all, listing_looks, naming_looks
from .rank_0_alone import is_for_rank_0
from .read_first import done_before
from .words import program_of

_Call = tuple[Script, ast.Call]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Continue)


@dataclass(frozen=True, eq=False)
class _Function:
    """What a function of the program does itself: its calls, and whether it goes through batches, or answers."""

    script: Script
    calls: tuple[ast.Call, ...]
    goes_through_data: bool
    answers: bool
    is_property: bool


def waits_for_lookers(script: Script, target: Target) -> Iterator[Insert]:
    """Let all ranks have looked for a file before rank 0 writes it: `if not prepared(): prepare()`."""
    message = "wait until all ranks have looked for the file"
    for statement, where in _places(script):
        if _is_for_all(script, statement):
            yield Insert(statement, target.words.barrier, message, where, modules=target.words.imports)


def chosen_looks(script: Script) -> Iterator[tuple[ast.expr, str]]:
    """The conditions of expressions by which files are written, or not: `load() if prepared() else prepare()`.

    Yields each with the code of its truth, which can be sent.
    """
    program = program_of(script)
    for each in script.find(ast.IfExp):
        looks = [*_told(program, script, each.test)]
        if looks and _writes(program, script, [each.body, each.orelse], looks) and _is_for_all(script, each):
            is_truth = isinstance(each.test, ast.UnaryOp) or _looks(program, script, each.test)
            yield each.test, "{}" if is_truth else "bool({})"


def _is_for_all(script: Script, node: ast.stmt | ast.expr) -> bool:
    """Whether all ranks come to some code equally often, where they can wait for each other."""
    followed = program_of(script).followed
    alone = node in sample_code(script) or is_for_rank_0(script, node) or script.scope(node) in _ended(script)
    unequal = comes_unequally(followed.found, followed.status, script, node)
    return not alone and not unequal and is_in_group(script, node) and is_met_by_all(script, node)


def _ended(script: Script) -> list[ast.AST]:
    """The functions that are called when the process group is gone, as a rule."""
    return [each for each in script.find(ast.FunctionDef) if each.name == "__del__"]


def _places(script: Script) -> Iterator[tuple[ast.stmt, Literal["before", "after"]]]:
    """The statements before or after which all ranks have looked, and one is to write."""
    program = program_of(script)
    sent = {*decisive_looks(script), *naming_looks(script), *(call for call, _ in listing_looks(script))}
    for branch in script.find(ast.If):
        looks = [] if sent & {*ast.walk(branch.test)} else [*_behind(program, script, branch)]
        for block in _sides(script, branch) if looks else ():
            if _writes(program, script, block, looks):
                yield block[0], "before"
        if (
            looks
            and isinstance(branch.body[-1], _LEAVES)
            and _writes(program, script, _rest(program, script, branch), looks)
        ):
            yield branch, "after"


def _sides(script: Script, branch: ast.If) -> Iterator[list[ast.stmt]]:
    """The blocks of a branch, those of its `elif` too."""
    yield branch.body
    other = branch.orelse[0] if branch.orelse else None
    if isinstance(other, ast.If) and script.text.splitlines()[other.lineno - 1].lstrip().startswith("elif"):
        yield from _sides(script, other)
    elif branch.orelse:
        yield branch.orelse


def _rest(program: Program, script: Script, branch: ast.If) -> list[ast.stmt]:
    """What follows a branch that leaves a function, or a turn of a loop, up to the next loop over data."""
    found: list[ast.stmt] = []
    statement: ast.AST = branch
    while isinstance(statement, ast.If | ast.With | ast.Try):
        block = script.block(statement)
        for each in block[block.index(statement) + 1 :]:
            if _goes_through_data(program, script, [each]):
                return found
            found.append(each)
        statement = script.parents[statement]
    return found


def _writes(program: Program, script: Script, code: Iterable[ast.AST], looks: list[_Call]) -> bool:
    """Whether some code writes, itself or in functions that it calls, what some calls may have looked for."""
    written = ((there, call) for there, call in _calls(program, script, code) if call in _written(there))
    return any(may_be_read_by(there, call, other, look) for there, call in written for other, look in looks)


@lru_cache(maxsize=KEPT)
def _written(script: Script) -> frozenset[ast.Call]:
    """The calls that write a file, but not one for each sample."""
    of_samples = sample_code(script)
    files = (call for call in effects(script) if writes_a_file(script, call) and not makes_folder(script, call))
    return frozenset(call for call in files if call not in of_samples)


def _behind(program: Program, script: Script, branch: ast.If) -> Iterator[_Call]:
    """The calls that look for a file, of which a condition tells."""
    yield from _told(program, script, branch.test)
    asked = [part for part in ast.walk(branch.test) if isinstance(part, ast.Name | ast.Attribute)]
    names = {ast.unparse(part) for part in asked}
    for each in done_before(script, branch):
        for part in ast.walk(each):
            if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign) and names & _assigned(part):
                yield from _told(program, script, part.value) if part.value is not None else ()
                yield from _decided(program, script, part)
    for part in asked:  # handed over, or of the object
        calls = (each for each in origins(script, part) if isinstance(each, ast.Call))
        yield from ((script, each) for each in calls if last_name(each.func) in LOOKS)


def _assigned(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {ast.unparse(part) for each in targets for part in ast.walk(each)}


def _decided(program: Program, script: Script, statement: ast.stmt) -> Iterator[_Call]:
    """The looks by which ranks come to a statement, in a condition."""
    for around in script.ancestors(statement):
        if isinstance(around, _FUNCTIONS):
            return
        if isinstance(around, ast.If):
            yield from _told(program, script, around.test)


def _told(program: Program, script: Script, node: ast.expr) -> Iterator[_Call]:
    """The calls that look for a file in an expression, or in a function whose answer it takes."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and _looks(program, script, part):
            yield script, part
        for function in _called(program, script, part):
            inside = [function, *_behind_calls(program, function.script, function.calls)]
            if function.answers and not any(each.goes_through_data for each in inside):
                calls = ((each.script, call) for each in inside for call in each.calls)
                yield from _looking(program, calls)


def _looks(program: Program, script: Script, call: ast.expr) -> bool:
    """Whether an expression looks for files: a call of one of the program's own is known by what it does."""
    if not isinstance(call, ast.Call):
        return False
    looks = last_name(call.func) in LOOKS | LISTS and not any(True for _ in _called(program, script, call))
    given = last_name(call.func) in ("map", "filter") and bool(call.args) and last_name(call.args[0]) in LOOKS
    return looks or given


def _looking(program: Program, calls: Iterable[_Call]) -> Iterator[_Call]:
    """Those of some calls that look for a file, or read one."""
    for script, call in calls:
        if _looks(program, script, call) or (reads(script, call) and call not in _written(script)):
            yield script, call


def _goes_through_data(program: Program, script: Script, code: Iterable[ast.AST]) -> bool:
    """Whether some code, or what it calls, goes through batches, at which ranks wait for each other, or fail alone."""
    loops, parts = program.followed.found.loops, [part for each in code for part in walk(each)]
    return any(part in loops for part in parts) or any(
        each.goes_through_data for each in _behind_calls(program, script, parts)
    )


def _calls(program: Program, script: Script, code: Iterable[ast.AST]) -> Iterator[_Call]:
    """The calls in some code, and in the functions and classes of the program that it calls."""
    parts = [part for each in code for part in walk(each)]
    yield from ((script, part) for part in parts if isinstance(part, ast.Call))
    for function in _behind_calls(program, script, parts):
        yield from ((function.script, call) for call in function.calls)


def _behind_calls(program: Program, script: Script, parts: Iterable[ast.AST]) -> list[_Function]:
    """The functions of the program that some nodes call, and those that these call."""
    found = dict.fromkeys(function for part in parts for function in _called(program, script, part))
    waiting = [*found]
    while waiting:
        function = waiting.pop()
        new = {
            each: None
            for call in function.calls
            for each in _called(program, function.script, call)
            if each not in found
        }
        found |= new
        waiting += new
    return [*found]


def _called(program: Program, script: Script, node: ast.AST) -> Iterator[_Function]:
    """The functions of the program that a node may call, by its name: a property is read."""
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name | ast.Attribute):
        return
    owner: ast.expr = called
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    imported = isinstance(owner, ast.Name) and owner.id in script.imported
    if imported and not is_own_module(script, script.qualified(called)):
        return
    functions = _functions(program).get(last_name(called), ())
    yield from (each for each in functions if each.is_property is not isinstance(node, ast.Call))


@lru_cache(maxsize=KEPT)
def _functions(program: Program) -> Mapping[str, list[_Function]]:
    """The functions of a program by the names that they are called by: a class by its own."""
    found: dict[str, list[_Function]] = {}
    loops = program.followed.found.loops
    for script in program.scripts:
        for function in script.find(*_FUNCTIONS):
            owner, parts = script.parents[function], [*walk(function)]
            name = getattr(function, "name", "")
            made = isinstance(owner, ast.ClassDef) and name == "__init__"
            known = _Function(
                script=script,
                calls=tuple(part for part in parts if isinstance(part, ast.Call)),
                goes_through_data=any(part in loops for part in parts),
                answers=any(isinstance(part, ast.Return) and part.value is not None for part in parts),
                is_property=any("property" in ast.unparse(each) for each in function.decorator_list),
            )
            found.setdefault(getattr(owner, "name", "") if made else name, []).append(known)
    return found
