"""What moves a model to its device: DistributedDataParallel looks where its parameters are when it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..eager import is_move, is_moved_before
from ..script import Script
from ..trained_modules import Base
from .new_models import is_of_new_model
from .program import Program
from .scopes import FUNCTIONS, parameters_of
from .signatures import argument

_TYPES = ("double", "float", "half", "bfloat16", "type")


def moves(program: Program, script: Script, node: ast.stmt, code: str) -> bool:
    """Whether a statement moves a model, in some cases at least: by itself, or by what it calls.

    Args: the file, the statement, the code of the model.
    """
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    if isinstance(value, ast.Call) and changes_tensors(value, code):
        return True
    if isinstance(node, ast.If | ast.With) and any(changes_tensors(each, code) for each in _moves_in(node)):
        return True
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.List | ast.Tuple):
        name = node.target.id  # for net in (encoder, decoder): net.to(device)
        listed = any(ast.unparse(each) == code for each in node.iter.elts)
        return listed and any(changes_tensors(each, name) for each in _moves_in(node))
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return False
    return any(_moves_called(program, script, each, code) for each in ast.walk(node) if isinstance(each, ast.Call))


def _moves_in(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call) and is_move(part))


def _moves_called(program: Program, script: Script, call: ast.Call, code: str) -> bool:
    """Whether a function of the program moves a model: one that it is given, or an attribute of its own object."""
    for function, calls in program.followed.found.called_with.items():
        if (call, script) not in calls or not isinstance(function, FUNCTIONS):
            continue
        given = ((name, argument(function, name, call)) for name in parameters_of(function))
        names = [name for name, value in given if value is not None and ast.unparse(value) == code]
        names += [code] if code.startswith("self.") else []
        if any(changes_tensors(each, name) for each in _moves_in(function) for name in names):
            return True
    return False


def is_moved(program: Program, script: Script, at: ast.stmt, base: Base, made: frozenset[ast.AST]) -> bool:
    """Whether a model is seen to be moved before a statement, or nothing of the program ever is.

    Args: the file; the statement; the model as its optimizer is given it; the calls one of which makes it.
    """
    first = made <= program.followed.found.moved_first
    if first or is_moved_before(script, base.node, at.lineno):
        return True
    if not any(is_move(call) for each in program.scripts for call in each.find(ast.Call)):
        return True
    scope = script.scope(at)
    above = (each for each in ast.walk(scope) if isinstance(each, ast.stmt) and each.lineno < at.lineno)
    return any(moves(program, script, each, base.code) for each in above if script.scope(each) is scope)


def moved_behind(program: Program, script: Script, at: ast.stmt, code: str) -> list[ast.Call]:
    """What moves a model to its device, or gives it another type of numbers, behind the statement before which it is
    wrapped, and before it is trained; and what moves it in the loop that trains it. Another model that has got its name
    is none."""
    found = _moved_by_name(program, script, at, code)
    return [each for each in found if not is_of_new_model(program, script, at, each, code)]


def _moved_by_name(program: Program, script: Script, at: ast.stmt, code: str) -> list[ast.Call]:
    found: list[ast.Call] = []
    for each in statements_from(script, at):
        if trains_in(program, each):
            parts = (part for part in ast.walk(each) if isinstance(part, ast.Call))
            found += [part for part in parts if is_move(part) and changes_tensors(part, code)]
            break
        value = each.value if isinstance(each, ast.Expr | ast.Assign) else None
        if isinstance(value, ast.Call) and changes_tensors(value, code):
            found.append(value)
        elif isinstance(each, ast.If | ast.With):
            found += [part for part in _moves_in(each) if changes_tensors(part, code)]
    return found


def trains_in(program: Program, node: ast.stmt) -> bool:
    """Whether a statement comes to a backward pass."""
    training = program.followed.found.training_statements
    return not isinstance(node, (*FUNCTIONS, ast.ClassDef)) and any(part in training for part in ast.walk(node))


def statements_from(script: Script, at: ast.stmt) -> Iterator[ast.stmt]:
    """A statement, those of its block behind it, and then those behind the blocks around it."""
    block = script.block(at)
    yield from block[block.index(at) :]
    for around in script.ancestors(at):
        if isinstance(around, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            return
        if isinstance(around, ast.stmt):
            block = script.block(around)
            yield from block[block.index(around) + 1 :]


def changes_type(move: ast.Call) -> bool:
    """Whether a call gives the parameters of a model another type, or layout, too."""
    return not is_move(move) or len(move.args) > 1 or any(each.arg == "dtype" for each in move.keywords)


def changes_tensors(node: ast.expr, code: str) -> bool:
    """Whether a call moves a model, or gives its parameters another type: `model.to(device)`, `model.double()`."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or ast.unparse(called.value) != code:
        return False
    return is_move(node) or called.attr in _TYPES or (called.attr == "to" and ast.unparse(node) != f"{code}.to('cpu')")
