"""Before which statement a model is wrapped."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from ..all_ways import behind_all_ways
from ..script import Script
from ..trained_modules import Base
from .apex import initializes
from .frames import Freeze
from .moved_models import moves, trains_in
from .other_names import is_for_several
from .program import Program
from .scopes import FUNCTIONS, binder_of
from .wrapped_names import Wrapped, optimizers_of

_BRANCHES = (ast.If, ast.Try, ast.With)
_ADDING = ("add_module", "append", "extend", "insert", "register_module", "register_parameter", "__setitem__")
_FREEZING = ("requires_grad", "requires_grad_")


def place(program: Program, script: Script, call: ast.AST, base: Base) -> ast.stmt:
    """The statement before which a model is wrapped: that of its optimizer, or the branches around it in which nothing
    is frozen, and the model gets no other layers."""
    best = at = script.statement(call)
    freezing = program.followed.found.freezing
    for parent in script.ancestors(at):
        if not isinstance(parent, _BRANCHES):
            break
        if _assigns(parent, base.code):
            sharded = program.fully_sharded  # an optimizer gets the parts of parameters
            return best if sharded else _behind(program, script, parent, base.code) or best
        if any((part in freezing and part is not parent) or _replaces(part, base.code) for part in ast.walk(parent)):
            break
        if isinstance(parent, ast.If | ast.Try):
            best = parent
    return best


def _behind(program: Program, script: Script, branches: ast.AST, code: str) -> ast.stmt | None:
    """The statement behind an `if` that makes a model in one way and takes it from a checkpoint in another."""
    if not program.followed.found.training_statements.isdisjoint(ast.walk(branches)):
        return None
    return behind_all_ways(script, branches, lambda each: _assigns(each, code))


def seen_from(program: Program, script: Script, call: ast.AST, base: Base) -> list[ast.AST]:
    """Where a model is known whose optimizer a call makes: there, or where the function is called that makes the
    optimizer of a variable which is not its own, and does nothing else with it."""
    around = next((each for each in script.ancestors(call) if isinstance(each, FUNCTIONS)), None)
    if around is None or not isinstance(base.node, ast.Name) or binder_of(script, base.node) is around:
        return [call]
    found = program.followed.found
    inside = {*ast.walk(around)}
    if (
        _assigns(around, base.code)
        or inside & (found.freezing | found.training_statements)
        or any(_replaces(part, base.code) for part in inside)
    ):
        return [call]
    binder = binder_of(script, base.node)
    calls = sorted(found.called_with.get(around, ()), key=lambda each: each[0].lineno)
    here = [each for each, other in calls if other is script and script.scope(each) is binder]
    return [*here] if here and len(here) == len(calls) else [call]


def is_kept_there(at: ast.AST, code: str) -> bool:
    """Whether a model is wrapped behind a statement, the last that keeps it: `self.model = model.to(device)`; not
    before it, as where an optimizer is made, which may give the model its name again."""
    parts = [each for each in ast.walk(at) if isinstance(each, ast.Assign)] if isinstance(at, ast.stmt) else []
    return any(_assigns(each, code) and not is_for_several(each.value, code) for each in parts)


def moved_on(program: Program, script: Script, at: ast.stmt, base: Base) -> ast.stmt:
    """The statement, or one behind those that move the model to its device later, let apex.amp change it, or freeze
    some of its parameters: `optimizer = …; model.to(device)`."""
    block = [] if program.fully_sharded else script.block(at)  # an optimizer gets the parts of parameters
    for each, after in itertools.pairwise(block[block.index(at) :] if block else ()):
        found = program.followed.found
        freezes = [freeze for freeze in found.late_freezes.values() if is_frozen_by(program, freeze, [each])]
        if any(freeze.models & found.frozen_at_times for freeze in freezes):
            break  # it has to know all parameters
        if freezes:
            at = after
            continue
        if trains_in(program, each):
            break
        if moves(program, script, each, base.code) or initializes(script, each, base.code):
            at = after
    return at


def is_initialized(script: Script, call: ast.AST, at: ast.stmt) -> bool:
    """Whether apex.amp has changed a model before it is wrapped: a statement above, in the same function, has the call,
    in some cases at least."""
    around = {call, *script.ancestors(call)} if script.scope(call) is script.scope(at) else set()
    for each in (at, *script.ancestors(at)):
        if not isinstance(each, ast.stmt) or each is script.scope(at):
            return False
        block = script.block(each)
        if any(above in around for above in block[: block.index(each)]):
            return True
    return False


def is_frozen_by(program: Program, freeze: Freeze, statements: Sequence[ast.stmt]) -> bool:
    """Whether parameters are frozen in some statements, or in what these call, and nothing is trained there."""
    trains = program.followed.found.training_statements
    quiet = (each for each in statements if each not in trains and not isinstance(each, (*FUNCTIONS, ast.ClassDef)))
    return any(part in freeze.statements for each in quiet for part in ast.walk(each))


def knows_all(program: Program, model: Wrapped, at: ast.stmt) -> bool:
    """Whether a model is wrapped where its optimizer is made, before what freezes parameters behind that."""
    found, script = program.followed.found, model.script
    block = script.block(at)
    parts = (part for call in optimizers_of(program, model) for part in script.ancestors(call))
    around = [part for part in parts if isinstance(part, ast.stmt)]
    if model.side != "before" or not any(each in block for each in around):
        return False
    first = min(block.index(each) for each in around if each in block)
    between = block[first : block.index(at)]  # what moves the model
    freezes = (freeze for freeze in found.late_freezes.values() if freeze.models & model.made)
    return not any(is_frozen_by(program, freeze, between) for freeze in freezes)


def once(program: Program, places: list[tuple[ast.stmt, set[ast.AST]]], script: Script, code: str) -> list[ast.stmt]:
    """The statements of which each run passes one for each model: the first, those in other branches, and those behind
    a training, before which parameters may have been unfrozen, or behind another value of the model's name.

    Args: where optimizers are made, with the calls that make what each trains, as far as these are known; the code of
    the model.
    """
    found: dict[ast.stmt, set[ast.AST]] = {}
    for place, made in sorted(places, key=lambda each: each[0].lineno):
        if place in found:
            found[place] |= made
            continue
        before = [first for first in found if _is_run_with(script, first, place)]
        known = set().union(*(found[first] for first in before))
        if not before or not made or not made <= known or _is_changed(program, script, before[-1], place, code):
            found[place] = {*made}
    return [*found]


def _is_run_with(script: Script, first: ast.stmt, place: ast.stmt) -> bool:
    """Whether whatever runs a statement has run another one, above it, too."""
    return any(each in script.block(first) for each in (place, *script.ancestors(place)))


def _is_changed(program: Program, script: Script, first: ast.stmt, place: ast.stmt, code: str) -> bool:
    """Whether a model is trained, gets other parameters to train, or its name another model, behind a statement and
    before another one, below it."""
    between = [each for each in script.block(first) if first.lineno < each.lineno < place.lineno]
    parts = [part for each in between for part in ast.walk(each)]
    unfreezes = any(isinstance(part, ast.Attribute) and part.attr in _FREEZING for part in parts)
    unfreezes |= any(_replaces(part, code) for part in parts)
    return unfreezes or any(_trains(program, part) for part in parts) or any(_assigns(each, code) for each in between)


def _trains(program: Program, node: ast.AST) -> bool:
    """Whether a call trains a model, or is one of a function of the program, which may."""
    found = program.followed.found
    given = (call for calls in found.called_with.values() for call, _ in calls)
    return isinstance(node, ast.Call) and (node in found.training_forwards or any(node is call for call in given))


def _assigns(node: ast.AST, code: str) -> bool:
    stores = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return any(isinstance(part.ctx, ast.Store) and ast.unparse(part) == code for part in stores)


def _replaces(node: ast.AST, code: str) -> bool:
    """Whether a model gets another layer: `model.fc = …`, `model.body[0] = …`, `model.body.append(…)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr" and node.args:
        return f"{ast.unparse(node.args[0])}.".startswith(f"{code}.")
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        return ast.unparse(node).startswith((f"{code}.", f"{code}["))
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in _ADDING:
        return False
    owner = ast.unparse(called.value)
    return owner == code or owner.startswith((f"{code}.", f"{code}["))
