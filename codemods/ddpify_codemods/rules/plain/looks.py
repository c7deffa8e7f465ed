"""Looks for files by which ranks decide whether they are written: a faster rank may have written them already."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from functools import lru_cache
from typing import TypeGuard

from ...facts.called_modules import last_name
from ...facts.effects import effects, makes_folder, sample_code
from ...facts.header import is_in_group
from ...facts.script import KEPT, Script
from .all_come import all_come
from .clocks import comes_apart
from .words import program_of

LOOKS = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir", "lexists", "getsize"})
LISTS = frozenset({"listdir", "glob", "iterdir", "scandir"})
# What is made of lists of files is one, or tells of one.
_OF_LISTS = frozenset({"sorted", "list", "len", "reversed", "filter", "natsorted", "max", "min", "join", "int"})
_OF_LISTS |= {"endswith", "startswith", "split", "sub", "search", "group", *LISTS}
_GIVE_LISTS = frozenset({"os.listdir", "glob.glob"})
_WALKS = frozenset({"walk", "scandir", "iglob", "rglob", "next", "iter"})
_COUNTS = ("range(", "itertools.count(", "count(")
_EXITS = (ast.Break, ast.Continue, ast.Return, ast.Raise)
# What a loop `while True` that is to turn alike on all ranks has none of: it may leave there, or look elsewhere.
_APART = (ast.For, ast.While, ast.Try, ast.Assert, ast.FunctionDef, ast.Lambda, ast.Yield, ast.YieldFrom)
_STEPS = 3  # from what is counted to the name of a folder


def decisive_looks(script: Script) -> Iterator[ast.Call]:
    """The calls that look for a file, by which all ranks together come to where rank 0 writes, or do not.

    The ranks do not look at the same time: `if not os.path.exists(cache): torch.save(…, cache)` would let a rank that
    is slower pass by a barrier at which the others wait. So would `if os.path.exists("stop"): break` in a loop over
    epochs, of a file that anybody may make while the ranks train.
    """
    of_samples, epochs = sample_code(script), _epochs(script)
    writers, writing = _writers(script), _writing(script)
    ending = LOOKS.union(*map(_looking, program_of(script).scripts)) if epochs else LOOKS
    for branch in script.find(ast.If):
        inside = (part for each in (*branch.body, *branch.orelse) for part in ast.walk(each))
        calls = (part for part in inside if isinstance(part, ast.Call))
        writes = any(call in writers or last_name(call.func) in writing for call in calls)
        ends = _ends_loop(script, branch, epochs)
        for call in _looks_in(branch.test, ending if ends else LOOKS) if writes or ends else ():
            met = is_met_by_all(script, call) or (ends and not comes_apart(script, call))
            if call not in of_samples and is_in_group(script, call) and met:
                yield call
    for loop in script.find(ast.While):
        for call in _looks_in(loop.test, ending) if loop in epochs else ():
            if is_in_group(script, call):
                yield call


def _looks_in(test: ast.expr, names: Set[str]) -> list[ast.Call]:
    """The calls of some names in a condition."""
    return [part for part in ast.walk(test) if isinstance(part, ast.Call) and last_name(part.func) in names]


@lru_cache(maxsize=KEPT)
def _looking(script: Script) -> frozenset[str]:
    """The names of a file's functions that give back whether a file is there."""
    return frozenset(
        function.name
        for function in script.find(ast.FunctionDef)
        for part in ast.walk(function)
        if isinstance(part, ast.Return) and part.value is not None and _looks_in(part.value, LOOKS - {"getsize"})
    )


def _epochs(script: Script) -> set[ast.AST]:
    """The loops over epochs of a program."""
    return {each.epochs for each in program_of(script).followed.found.passes if each.epochs is not None}


def naming_looks(script: Script, endless: bool = True) -> Iterator[ast.Call]:
    """The calls that look which folder is free, `while os.path.exists(f"run{n}")`, or count those that are there.

    A rank that is slower would find the folder that a faster one has made, and give the run another name.

    Args:
        endless: whether those in loops `while True`, too.
    """
    of_samples = sample_code(script)
    folders = [call for call in script.find(ast.Call) if makes_folder(script, call)]
    if not any(makes_folder(each, call) for each in program_of(script).scripts for call in each.find(ast.Call)):
        return
    ending = _ending(script) if endless else set[ast.AST]()
    for call in script.find(ast.Call):
        sendable = LOOKS | LISTS - {"scandir"}  # which gives entries that cannot be pickled
        if last_name(call.func) not in sendable or call in of_samples or not is_in_group(script, call):
            continue
        branch = next((each for each in script.ancestors(call) if isinstance(each, ast.stmt)), None)
        of_test = isinstance(branch, ast.While | ast.If) and any(each is call for each in ast.walk(branch.test))
        named = _named(script, call, folders)
        if last_name(call.func) in LOOKS and of_test:
            leaves = any(isinstance(each, ast.Break | ast.Return) for each in getattr(branch, "body", ()))
            outside = script.ancestors(branch) if branch is not None else ()
            tries = leaves and any(isinstance(each, ast.For | ast.While) for each in outside)
            known = named & _names(call)
            looks = isinstance(branch, ast.While) or tries or branch in ending or bool(known & _set_in(branch))
            looks = looks or (bool(known) and isinstance(branch, ast.If) and _stops(branch))
        else:
            looks = last_name(call.func) in LISTS and isinstance(branch, ast.Assign) and bool(named & _set_in(branch))
        if branch is not None and looks and (branch in ending or is_met_by_all(script, branch)):
            yield call


def _ending(script: Script) -> set[ast.AST]:
    """The branches `if LOOK` of loops `while True` that nothing else ends: as each look is sent, all ranks turn
    alike."""
    found, program = set[ast.AST](), program_of(script)
    for loop in script.find(ast.While):
        parts = [part for each in loop.body for part in ast.walk(each)]
        exits = [each for each in parts if isinstance(each, _EXITS) or (_is_call(each) and _ends(each))]
        inside = {*parts} - {each for each in parts if isinstance(each, ast.Expr)}  # statements `sys.exit()`
        around = {each for part in exits for each in script.ancestors(part) if each in inside}
        branches = {each for each in around if isinstance(each, ast.If) and _is_look(each.test)}
        endless = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        simple = around == branches and not any(isinstance(each, _APART) for each in parts)
        if endless and branches and simple and all_come(program, script, loop):
            found |= branches
    return found


def _ends(call: ast.Call) -> bool:
    """Whether a call ends the program."""
    return last_name(call.func) in {"exit", "quit", "_exit", "abort"}


def _is_look(test: ast.expr) -> bool:
    """Whether a condition is a look, or that it has failed."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(asked, ast.Call) and last_name(asked.func) in LOOKS and len(_looks_in(asked, LOOKS | LISTS)) == 1


def as_list(script: Script, call: ast.Call) -> str:
    """The code of what is sent of a look: generators cannot be."""
    lists = last_name(call.func) in LISTS and script.qualified(call.func) not in _GIVE_LISTS
    return "list({})" if lists else "{}"


def listing_looks(script: Script) -> Iterator[tuple[ast.Call, str]]:
    """The calls that list files, by which all ranks together come to where rank 0 writes or removes some, and the code
    of what they list: `for old in sorted(glob.glob("*.pt"))[:-3]: os.remove(old)`.

    A rank that is slower would not find what rank 0 has removed already, and not come to the barrier as often.
    """
    of_samples = sample_code(script)
    writers, writing = _writers(script), _writing(script)
    decided = [
        (each, {*ast.walk(each.iter if isinstance(each, ast.For) else each.test)})
        for each in script.find(ast.For, ast.If)
        if any(part in writers or last_name(part.func) in writing for part in ast.walk(each) if _is_call(part))
    ]
    for call in script.find(ast.Call):
        if last_name(call.func) not in LISTS - {"scandir"} or call in of_samples or not is_in_group(script, call):
            continue
        statement = script.statement(call)
        names = _made_of(script, statement)
        decides = any(
            call in parts or names & {_name_in(script, part, statement) for part in parts} for _, parts in decided
        )
        if decides and is_met_by_all(script, statement):
            yield call, as_list(script, call)


def _is_call(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call)


def _made_of(script: Script, statement: ast.stmt) -> set[str]:
    """The names of what a statement assigns, a list of files, and of what is made of it."""
    if not isinstance(statement, ast.Assign) or not _is_listing(statement):
        return set()
    names, scope = _set_in(statement), script.scope(statement)
    given = [node for node in script.find(ast.Assign) if script.scope(node) is scope and _is_listing(node)]
    for _ in range(_STEPS):
        names |= {name for node in given if names & _names(node.value) for name in _set_in(node)}
    return names


def _is_listing(node: ast.Assign) -> bool:
    return all(last_name(part.func) in _OF_LISTS for part in ast.walk(node.value) if _is_call(part))


def _name_in(script: Script, node: ast.AST, statement: ast.stmt) -> str:
    """The name that a node of the same function is; "" for others."""
    return node.id if isinstance(node, ast.Name) and script.scope(node) is script.scope(statement) else ""


def _ends_loop(script: Script, branch: ast.If, epochs: Set[ast.AST]) -> bool:
    """Whether a branch in a loop over epochs leaves it, or the program."""
    parts = [part for each in (*branch.body, *branch.orelse) for part in ast.walk(each)]
    leaves = any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in parts) or _stops(branch)
    return leaves and any(each in epochs for each in script.ancestors(branch))


def _stops(branch: ast.If) -> bool:
    """Whether a branch ends the program: a slower rank would find the folder of a faster one, and stop."""
    last = branch.body[-1]
    ends = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and last_name(last.value.func) == "exit"
    return isinstance(last, ast.Raise) or ends


def _named(script: Script, call: ast.Call, folders: list[ast.Call]) -> set[str]:
    """The names, in the function around a call, of which the names of folders are made."""
    scope = script.scope(call)
    names = {name for each in folders if script.scope(each) is scope for name in _names(each)}
    given = [node for node in script.find(ast.Assign) if script.scope(node) is scope]
    for _ in range(_STEPS):
        names |= {name for node in given if names & _set_in(node) for name in _names(node.value)}
    return names


def _set_in(branch: ast.AST | None) -> set[str]:
    """The names that are assigned to in a statement, those of attributes too: `self.runs`."""
    return {name for name, part in _named_in(branch or ast.Pass()) if isinstance(part.ctx, ast.Store)}


def _names(node: ast.AST) -> set[str]:
    return {name for name, part in _named_in(node) if isinstance(part.ctx, ast.Load)}


def _named_in(node: ast.AST) -> Iterator[tuple[str, ast.Name | ast.Attribute]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id, part
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            yield ast.unparse(part), part


def _writers(script: Script) -> set[ast.Call]:
    return {call for call in effects(script) if not makes_folder(script, call)}


def _writing(script: Script) -> set[str]:
    """The names of the program's functions that write something."""
    around = (
        parent for each in program_of(script).scripts for call in _writers(each) for parent in each.ancestors(call)
    )
    return {parent.name for parent in around if isinstance(parent, ast.FunctionDef)}


def is_met_by_all(script: Script, call: ast.AST) -> bool:
    """Whether all ranks come to a call equally often."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Lambda | ast.comprehension | ast.While):
            return False
        if isinstance(parent, ast.For) and not _turns_alike(script, parent):
            return False
        if isinstance(parent, ast.FunctionDef):
            return True
    return True


def _turns_alike(script: Script, loop: ast.For) -> bool:
    """Whether all ranks take as many turns of a loop: not over batches, nor over files, which may be new to one."""
    if ast.unparse(loop.iter).startswith(_COUNTS):
        return True
    followed, parts = program_of(script).followed, {*ast.walk(loop.iter)}
    of_loaders = loop in followed.found.loops or parts & {*followed.found.sites, *followed.evaluated}
    return not of_loaders and not {last_name(part.func) for part in parts if _is_call(part)} & _WALKS
