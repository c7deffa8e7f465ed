"""Which names hold the wrapper of a model, in functions that are given it too, and what becomes of their uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ..all_ways import in_other_branch
from ..called_modules import called_model
from ..data_parallel import is_put_in
from ..eager import is_move
from ..script import Script
from ..trained_modules import Base
from .frames import Problem
from .given_back import is_given_back
from .held_attributes import held_attribute, is_of_object
from .never_taken import is_passed_by, never_taken
from .program import Program
from .scopes import FUNCTIONS, binder_of, class_around, parameters_of
from .signatures import argument
from .unpacked_models import given_for, unpacked_from

UNUSED = "_"  # the name of what is not used
UNFOLLOWED = "and it cannot be followed"
# What the wrapper does as the model does.
SHARED = frozenset({"train", "eval", "parameters", "zero_grad", "training", "requires_grad_"})


@dataclass(eq=False)
class Wrapped:
    """A model that is wrapped. made: the calls one of which makes it. model, name: its code, and the wrapper's. bases:
    where optimizers are given its parameters, in a file. at: the statements before which it is wrapped. each: a name
    for each of them, where they are a list. side: whether it is wrapped before these statements, or behind the one that
    keeps it. is_moved_later: whether a function that is given the wrapper moves it. leaves_out: whether a forward may
    leave out parameters that the wrapper knows, or these may be frozen.
    """

    made: frozenset[ast.AST]
    model: str
    name: str
    script: Script
    bases: list[Base]
    at: list[ast.stmt]
    each: str = ""
    side: Literal["before", "after"] = "before"
    is_moved_later: bool = False
    leaves_out: bool = False


@dataclass(eq=False)
class Wrapping:
    """What is wrapped. models: in the order in which that is done. calls: what is called in training, and its code
    afterwards. modules: uses of a wrapper that need the model. returned: names that would get the model in the place of
    the wrapper that they hold, from a function that gives it back.
    """

    models: list[Wrapped] = field(default_factory=list)
    calls: dict[ast.expr, tuple[Script, str]] = field(default_factory=dict)
    modules: dict[ast.expr, Script] = field(default_factory=dict)
    returned: dict[ast.expr, Script] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parameters: dict[tuple[ast.AST, str], Wrapped] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The code of the first model; "" for none."""
        return self.models[0].model if self.models else ""

    @property
    def side(self) -> Literal["before", "after"]:
        """On which side of these statements."""
        return self.models[0].side if self.models else "before"

    @property
    def at(self) -> list[tuple[Script, ast.stmt]]:
        """The statements before which the first model is wrapped."""
        return [(each.script, at) for each in self.models[:1] for at in each.at]


def follow_call(program: Program, result: Wrapping, script: Script, node: ast.expr, model: Wrapped) -> None:
    """Let an expression that is the model be the wrapper; one that is another of the models be that one's."""
    models = (model, *result.models)
    names = [node, held_attribute(program, script, node) or node]
    known = next((each for one in names for each in models if _is_named(program, result, script, one, each)), None)
    if known is not None:
        result.calls[node] = (script, known.name)
        if (again := _bound_again(program, script, node, known)) is not None:
            what = f"`{known.model}` is given another value here, behind the optimizer that steps the first one"
            result.problems.append(Problem(script, again, what))
        return
    of_object = next(
        (each for each in models if is_of_object(program, script, node, each.script, each.bases[0].node)), None
    )
    if isinstance(node, ast.Attribute) and of_object is not None:
        result.calls[node] = (script, f"{ast.unparse(node.value)}.{of_object.name.removeprefix('self.')}")
        return
    binder = binder_of(script, node) if isinstance(node, ast.Name) else None
    if isinstance(node, ast.Name) and isinstance(binder, FUNCTIONS) and _is_given(script, binder, node.id):
        _parameter(program, result, binder, node.id, model)
        return
    reason = (
        f"`{ast.unparse(node)}` is called in training, {UNFOLLOWED} to `{model.model}`, whose parameters are trained"
    )
    result.problems.append(Problem(script, node, reason))


def _is_named(program: Program, result: Wrapping, script: Script, node: ast.expr, model: Wrapped) -> bool:
    """Whether an expression is the model by the name that its optimizer's parameters are taken by."""
    if ast.unparse(node) != model.model:
        return False
    several = model.side == "before" and len({_scope_of(script, base) for base in model.bases}) > 1
    return any(
        _is_base(program, result, script, node, model, base) and (not several or _holds_still(script, node, base))
        for base in model.bases
    )


def optimizers_of(program: Program, model: Wrapped) -> list[ast.Call]:
    """The calls that make the optimizers of a model, in its own file."""
    found = program.followed.found
    made = {call for each in model.made for call in found.optimizers_of.get(each, ())}
    return [call for call in made if found.optimizer_calls.get(call) is model.script]


def _scope_of(script: Script, base: Base) -> ast.AST | None:
    """The function, file or class whose variable or attribute an optimizer is given the parameters of."""
    return binder_of(script, base.node) if isinstance(base.node, ast.Name) else class_around(script, base.node)


def _holds_still(script: Script, node: ast.expr, base: Base) -> bool:
    """Whether a name, below the optimizer that is given its parameters, holds the same model as there: each of several
    functions wraps its own."""
    if not isinstance(node, ast.Name):
        return True
    if script.scope(node) is not script.scope(base.node) or node.lineno < base.node.lineno:
        return False
    return not any(True for _ in _stores_between(script, node, base))


def _bound_again(program: Program, script: Script, node: ast.expr, model: Wrapped) -> ast.stmt | None:
    """The statement that gives a model's name to another one, between its last optimizer and a training."""
    last = max(model.bases, key=lambda each: each.node.lineno)
    base = last.node
    if not isinstance(node, ast.Name) or not isinstance(base, ast.Name):
        return None
    if script.scope(node) is not script.scope(base):
        return None
    made = [call for call in optimizers_of(program, model) if script.scope(call) is script.scope(base)]
    for other in _stores_between(script, node, last):
        statement = script.statement(other)
        value = statement.value if isinstance(statement, ast.Assign) else None
        in_turn = isinstance(statement, ast.For) and other in ast.walk(statement.target)  # `for model in models:`
        kept = value is None or any(isinstance(each, ast.Name) and each.id == node.id for each in ast.walk(value))
        if kept and not in_turn and not (isinstance(value, ast.Call) and _makes_another(program, script, value)):
            continue
        entered = any(isinstance(each, ast.For | ast.While) for each in script.ancestors(other))
        before = not entered and bool(made) and all(statement.lineno < call.lineno for call in made)
        behind_both = not any(in_other_branch(script, statement, at) for at in model.at)  # so is the wrapper
        if not before and not (behind_both and any(in_other_branch(script, statement, call) for call in made)):
            return statement
    return None


def _makes_another(program: Program, script: Script, call: ast.Call) -> bool:
    """Whether a call makes a network, which may have another one as a part: `nn.Sequential(model, nn.Tanh())`."""
    name = script.qualified(call.func)
    last = name.rpartition(".")[2]
    if name.startswith("torch.nn."):
        return last[:1].isupper() and last not in ("DataParallel", "DistributedDataParallel")
    named = isinstance(call.func, ast.Name)
    return named and any(node.name == last for each in program.scripts for node in each.find(ast.ClassDef))


def _stores_between(script: Script, node: ast.Name, base: Base) -> Iterator[ast.Name]:
    """Where a variable is set between the optimizer that is given its parameters and a use of it, or in a loop around
    that use."""
    binder = binder_of(script, node)
    around = [each for each in script.ancestors(node) if isinstance(each, ast.For | ast.While)]
    entered = [each for each in around if each not in script.ancestors(base.node)]
    for other in ast.walk(binder):
        written = isinstance(other, ast.Name) and other.id == node.id and not isinstance(other.ctx, ast.Load)
        if isinstance(other, ast.Name) and written and binder_of(script, other) is binder:
            ends = script.statement(other).end_lineno or other.lineno
            if base.node.lineno < other.lineno and (ends < node.lineno or {*script.ancestors(other)} & {*entered}):
                yield other


def _is_base(program: Program, result: Wrapping, script: Script, node: ast.expr, model: Wrapped, base: Base) -> bool:
    """Whether an expression is what an optimizer is given the parameters of, in the same function or class."""
    if isinstance(base.node, ast.Attribute) or "." in base.code:
        own, other = class_around(script, node), class_around(model.script, base.node)
        same = script is model.script and own is other
        return same or (isinstance(own, ast.ClassDef) and _inherits(program, own, other, base.code.rpartition(".")[2]))
    if script is not model.script:
        return False
    if not isinstance(node, ast.Name) or not isinstance(base.node, ast.Name):
        return False
    binder = binder_of(script, node)
    given = isinstance(binder, FUNCTIONS) and node.id in parameters_of(binder)
    return binder is binder_of(script, base.node) and (not given or _binds_here(result, binder))


def _inherits(program: Program, cls: ast.ClassDef, other: ast.AST | None, name: str) -> bool:
    """Whether a class has an attribute of another one that it is derived from, and sets none of that name itself."""
    stores = (each for each in ast.walk(cls) if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load))
    if any(each.attr == name for each in stores):
        return False
    bases = program.followed.found.bases.get(cls, set())
    return other in bases or any(_inherits(program, each, other, name) for each in bases)


def _binds_here(result: Wrapping, function: ast.AST) -> bool:
    """Whether the wrappers are made in a function."""
    return any(function in each.script.ancestors(at) for each in result.models for at in each.at)


def _is_given(script: Script, function: ast.AST, name: str) -> bool:
    """Whether a function is given a name by its calls, or takes it out of what it is given."""
    return name in parameters_of(function) or unpacked_from(script, function, name) is not None


def _parameter(program: Program, result: Wrapping, function: ast.AST, name: str, model: Wrapped) -> None:
    """Let a parameter of a function take the wrapper, in all of its calls."""
    if (function, name) in result.parameters:
        return
    result.parameters[function, name] = model
    calls = program.followed.found.called_with.get(function, set())
    if not calls:
        result.problems.append(
            Problem(model.script, function, f"the calls that give `{name}` to this function cannot be seen")
        )
    for call, script in sorted(calls, key=lambda each: each[0].lineno):
        given = given_for(_file_of(program, function), function, name, call)
        if given is None:
            result.problems.append(Problem(script, call, f"what this call gives for `{name}` cannot be seen"))
        else:
            follow_call(program, result, script, given, model)


def follow_uses(program: Program, result: Wrapping, function: ast.AST, name: str, model: Wrapped) -> None:
    """The uses of a parameter that holds the wrapper."""
    script = _file_of(program, function)
    unpacked = unpacked_from(script, function, name)
    parallel = {node for node in ast.walk(function) if is_put_in(script, node, name)}  # DDP613 leaves the model of it
    models = {*parallel, *(node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name)}
    moves = {node for node in ast.walk(function) if is_move(node) and node.func.value in models}  # type: ignore[attr-defined]
    model.is_moved_later |= bool(moves)
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != name or node in result.calls:
            continue
        parent = script.parents[node]
        call = script.parents[parent] if isinstance(parent, ast.Attribute) else parent
        if not isinstance(node.ctx, ast.Load):
            given = isinstance(parent, ast.Assign) and (
                parent.value in moves | parallel or sets_mode(parent.value, name)
            )
            if _is_returned(program, script, function, node):
                result.returned[node] = script
            elif not given and (unpacked is None or parent is not unpacked[1]):
                result.problems.append(Problem(script, node, f"`{name}` is given another value here, in training"))
        elif (
            (isinstance(parent, ast.Attribute) and (parent.attr in SHARED or call in moves))
            or (
                isinstance(call, ast.Call)
                and called_model(call) is node
                and (call in program.followed.found.training_forwards or is_passed_by(program, script, call))
            )
            or _is_handed_on(program, result, script, node, parent)
            or parent in parallel
            or never_taken(program, script, node)
        ):
            continue
        else:
            result.modules[node] = script


def _is_returned(program: Program, script: Script, function: ast.AST, node: ast.Name) -> bool:
    """Whether a name gets what it holds from a function that is given it, where `_` may take that in its place."""
    parts = [*ast.walk(function)]
    is_read = any(isinstance(each, ast.Name) and each.id == UNUSED and isinstance(each.ctx, ast.Load) for each in parts)
    is_shared = any(isinstance(each, ast.Global | ast.Nonlocal) and UNUSED in each.names for each in parts)
    if binder_of(script, node) is not function or is_read or is_shared:
        return False
    return is_given_back(program, script, node, node.id, is_followed=True)


def _file_of(program: Program, function: ast.AST) -> Script:
    return next(each for each in program.scripts if function in each.parents)


def sets_mode(node: ast.expr, name: str) -> bool:
    """Whether a call gives back the model itself: `model = model.train()`."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("train", "eval") and ast.unparse(called.value) == name


def _is_handed_on(program: Program, result: Wrapping, script: Script, node: ast.Name, parent: ast.AST) -> bool:
    """Whether the wrapper is given to a parameter that takes it."""
    call = script.parents[parent] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    for function, name in result.parameters:
        calls = program.followed.found.called_with.get(function, set())
        if (call, script) in calls and argument(function, name, call) is node:
            return True
    return False
