"""What a script's own checkpoint decides before its loop trains: where it begins, the best value so far.

Such a script comes to its loop otherwise when it is started again, since by then there is a file. The run that goes on
has the values that it began with (`start = restore(start, …)`), and what the file gave to models is overwritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ..bindings import Scope, arguments
from ..called_modules import root
from ..origins import passed, sources
from ..script import Script
from .liveness import loaded, stored
from .obstacle import CannotResume
from .training import CallGraph, Loop

_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_EXITS = ("sys.exit", "exit", "quit")
_EXISTS = ("exists", "isfile", "is_file", "isdir", "glob", "listdir")


def own_start(training: CallGraph, loop: Loop, restored: Iterable[str]) -> tuple[str, ...]:
    """The variables and attributes that are read from the loop on, and may come from a file of the script's own.

    Args: the training; its outermost loop; the names whose objects are restored in place.

    Raises:
        CannotResume: the file decides whether it trains; or such a variable is not the function's own.
    """
    script, scope = loop.script, loop.scope
    _require_trains(script, loop)
    before = list(_before(script, loop.node, scope))
    names, attributes = _decided(training, script, before)
    names |= {each for each in arguments(scope) if _is_handed_over(training, loop, each)}
    end = [node for node in ast.walk(scope) if getattr(node, "lineno", 0) >= loop.node.lineno]
    read = {node.id for node in end if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    _require_own(training, loop, read)
    found = sorted(names & read - set(restored))
    for node in end:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in attributes:
            code = ast.unparse(node)
            if root(node) not in (*restored, "") and code not in found:
                found.append(code)
    return tuple(found)


def _decided(training: CallGraph, script: Script, before: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """The variables that statements give the values of a file, and the attributes, in any file of the program."""
    names: set[str] = set()
    contents: set[str] = set()  # whole files, of which the values are taken
    for _ in range(2):  # what is made of them further down
        for statement in before:
            loads = _loads(training, script, statement)
            reads = isinstance(statement, (ast.Assign, ast.AugAssign)) and loaded(statement.value) & names
            if loads or reads:
                names |= stored(statement)
                contents |= _contents(script, statement)
    places = [(script, statement) for statement in before if _loads(training, script, statement)]
    reached = [each for where, statement in places for each in training.reached(where, [statement])]
    nodes = [inner for _, statement in places for inner in ast.walk(statement)]
    nodes += [inner for each in reached for inner in ast.walk(each.node)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return names - contents, attributes


def _contents(script: Script, statement: ast.stmt) -> frozenset[str]:
    """The variables that hold all that a file does."""
    found = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_load(script, node.value)
    ]
    return stored(*found)


def _is_load(script: Script, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = script.qualified(node.func)
    return name == "torch.load" or (isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict")


def _loads(training: CallGraph, script: Script, statement: ast.stmt) -> bool:
    """Whether a statement reads a checkpoint, or calls what does."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    places = [(script, statement), *((each.script, each.node) for each in training.reached(script, [statement]))]
    return any(_is_load(where, node) for where, top in places for node in ast.walk(top))


def _before(script: Script, node: ast.AST, scope: Scope) -> Iterator[ast.stmt]:
    """The statements that have run when a node of a scope is reached."""
    for parent in (node, *script.ancestors(node)):
        if parent is scope:
            return
        around = script.parents[parent]
        for name in _BLOCKS:
            block = getattr(around, name, [])
            if isinstance(block, list) and parent in block:
                yield from block[: block.index(parent)]


def _is_handed_over(training: CallGraph, loop: Loop, parameter: str) -> bool:
    """Whether a caller gives a parameter of the loop's function a value that comes from a file."""
    script, scope = loop.script, loop.scope
    assert not isinstance(scope, ast.Module)
    for value in passed(script, scope, parameter):
        before = list(_before(script, script.statement(value), script.scope(value)))
        names, attributes = _decided(training, script, before)
        inner = [node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)]
        if loaded(value) & names or attributes & set(inner):
            return True
    return False


def _require_own(training: CallGraph, loop: Loop, read: set[str]) -> None:
    script, scope = loop.script, loop.scope
    if isinstance(scope, ast.Module):
        return
    shared = {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
    own = stored(*scope.body) | arguments(scope)
    names, _ = _decided(training, script, [each for each in script.tree.body if each.lineno < scope.lineno])
    for name in sorted(names & read - own - shared):
        if isinstance(loop.node, ast.For) and name in loaded(loop.node.iter):
            text = f"{name}, which a checkpoint of the script's own decides, is no variable of this function"
            raise CannotResume(script, loop.node, text, f"hand {name} over as an argument")


def _require_trains(script: Script, loop: Loop) -> None:
    """Refuse a script that trains only as long as there is no file."""
    around = [each for each in script.ancestors(loop.node) if isinstance(each, ast.If)]
    left = [each for each in _before(script, loop.node, loop.scope) if isinstance(each, ast.If) and _leaves(each.body)]
    for node in (*around, *left):
        if _asks_for_file(script, node.test):
            text = "whether it trains depends on a file, which may be there when the run goes on"
            raise CannotResume(script, node, text, "ask for the file by an option, or in a script of its own")


def _leaves(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    is_call = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    return isinstance(last, ast.Return) or (is_call and ast.unparse(last).partition("(")[0] in _EXITS)


def _asks_for_file(script: Script, test: ast.expr) -> bool:
    values = [test, *(each for node in ast.walk(test) if isinstance(node, ast.Name) for each in sources(script, node))]
    calls = (node for value in values for node in ast.walk(value) if isinstance(node, ast.Call))
    return any(ast.unparse(call.func).rpartition(".")[2] in _EXISTS for call in calls)
