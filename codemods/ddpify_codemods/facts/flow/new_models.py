"""Another model that gets the name of one which is trained: `model = Net()`, for the next fold, or for a test."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script
from .program import Program
from .values import root_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DERIVED = 4  # how many classes of the program are derived from each other


def is_of_new_model(program: Program, script: Script, at: ast.stmt, node: ast.expr, code: str) -> bool:
    """Whether a variable holds another model, where an expression reads it, than behind a statement: a class of the
    program has made it in the same block, and nothing has given the variable anything else since. What the block gives
    the variable last is trained, too: the next turn of a loop would train with a model that no optimizer knows.

    Args: the file; the statement; the expression; the code of the model.
    """
    if program.followed.found.shared or any(code in each.names for each in script.find(ast.Global, ast.Nonlocal)):
        return False
    here = script.statement(node)
    block = script.block(here)
    for each in reversed(block[: block.index(here)]):
        if each.lineno <= at.lineno:
            return False
        if code in _stored(each):
            return _makes_new(program, script, each, code) and _is_trained(program, block, code)
    return False


def _is_trained(program: Program, block: Sequence[ast.stmt], code: str) -> bool:
    """Whether the last model that a block gives a variable is trained; what is made of the model itself is none,
    `if several: model = nn.DataParallel(model)`."""
    trained = {root_of(module).made for module in program.followed.found.trained}
    given = (each for each in reversed(block) if code in _stored(each) and not _is_kept(each, code))
    last = next(given, None)
    return isinstance(last, ast.Assign) and last.value in trained


def _is_kept(statement: ast.stmt, code: str) -> bool:
    """Whether a statement, or what it does in some cases, gives a variable something that is made of what it holds."""
    within = statement.body if isinstance(statement, ast.If) and not statement.orelse else [statement]
    return all(
        isinstance(each, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == code for part in ast.walk(each.value))
        for each in within
        if code in _stored(each)
    )


def _stored(node: ast.AST) -> set[str]:
    """The names that get a value somewhere in a statement: are assigned, defined, imported or deleted."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, (*_DEFINITIONS, ast.ExceptHandler)) and part.name:
            found.add(part.name)
        elif isinstance(part, ast.alias):
            found.add(part.asname or part.name.partition(".")[0])
    return found


def _makes_new(program: Program, script: Script, statement: ast.stmt, code: str) -> bool:
    """Whether a statement does no more than to give a variable a new object of a class of the program, which is given
    nothing that is called."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or [ast.unparse(each) for each in statement.targets] != [code]:
        return False
    given = [*value.args, *(word.value for word in value.keywords)] if isinstance(value, ast.Call) else []
    calls = any(isinstance(part, ast.Call) for each in given for part in ast.walk(each))
    return isinstance(value, ast.Call) and not calls and _makes_each_anew(program, script, value.func, _DERIVED)


def _makes_each_anew(program: Program, script: Script, node: ast.expr, depth: int) -> bool:
    """Whether a class of the program, or of torch.nn, makes an object at each call: nothing says otherwise in it, or in
    what it is derived from."""
    meant = script.qualified(node)
    if meant.startswith("torch.nn."):
        return depth < _DERIVED
    module, _, name = meant.rpartition(".")
    files = {part for each in program.scripts for part in (each.path.stem, each.path.parent.name)}
    named = [(each, there) for there in program.scripts for each in there.find(*_DEFINITIONS) if each.name == name]
    stored = (each.id for there in program.scripts for each in there.find(ast.Name) if isinstance(each.ctx, ast.Store))
    if not named or not depth or name in stored or (module and module.rpartition(".")[2] not in files):
        return False
    return all(
        isinstance(each, ast.ClassDef)
        and bool(each.bases)
        and not (each.decorator_list or each.keywords or "__new__" in _stored(each))
        and all(_makes_each_anew(program, there, base, depth - 1) for base in each.bases)
        for each, there in named
    )
