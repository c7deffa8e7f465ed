"""Where the model is wrapped, which names then hold the wrapper, and what becomes of their other uses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..bindings import bindings
from ..called_modules import called_model
from ..eager import is_move
from ..optimizers import Optimizer, optimizers
from ..script import Script
from ..trained_modules import Base
from .frames import FlowFacts, Problem
from .listed_models import Listed, listed_models
from .other_names import by_other_name
from .program import Program
from .values import root_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What the wrapper does as the model does.
_UNFOLLOWED = "and it cannot be followed"
_SHARED = frozenset({"train", "eval", "parameters", "zero_grad", "training", "requires_grad_"})


@dataclass(eq=False)
class Wrapped:
    """A model that is wrapped. made: the calls one of which makes it. model, name: its code, and the wrapper's. bases:
    where optimizers are given its parameters, in a file. at: the statements before which it is wrapped. each: a name
    for each of them, where they are a list. is_moved_later: whether a function that is given the wrapper moves it.
    """

    made: frozenset[ast.AST]
    model: str
    name: str
    script: Script
    bases: list[Base]
    at: list[ast.stmt]
    each: str = ""
    is_moved_later: bool = False


@dataclass(eq=False)
class Wrapping:
    """What is wrapped. models: in the order in which that is done. calls: what is called in training, and its code
    afterwards. modules: uses of a wrapper that need the model.
    """

    models: list[Wrapped] = field(default_factory=list)
    calls: dict[ast.expr, tuple[Script, str]] = field(default_factory=dict)
    modules: dict[ast.expr, Script] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parameters: dict[tuple[ast.AST, str], Wrapped] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The code of the first model; "" for none."""
        return self.models[0].model if self.models else ""

    @property
    def at(self) -> list[tuple[Script, ast.stmt]]:
        """The statements before which the first model is wrapped."""
        return [(each.script, at) for each in self.models[:1] for at in each.at]


def wrapping(program: Program) -> Wrapping:
    """Decide where the trained models of a program are wrapped: before their optimizers are made; where training does
    not know them by the names that these are given, before the function is called that makes one, or where the object
    that calls the model is given it.
    """
    bases = list(_bases(program))
    result = _wrapped(program, bases)
    if any(_UNFOLLOWED in each.reason for each in result.problems):
        for others in (_given(program, bases), _kept(program), _by_other_names(bases)):
            again = _wrapped(program, others) if others else result
            if not again.problems:
                return again
    listed = listed_models(program, _SHARED) if result.problems and not program.fully_sharded else None
    return result if listed is None else _of_list(program, listed)


def _of_list(program: Program, listed: Listed) -> Wrapping:
    """Models that training takes from a list: so are their wrappers."""
    script, code = listed.script, listed.name.id
    roots = frozenset(root_of(module).made for module in program.followed.found.trained)
    wrapped = Wrapped(roots, code, _free(script, code), script, [Base(code, listed.name)], [listed.at], "each")
    found = Wrapping([wrapped])
    found.calls |= dict.fromkeys(listed.takes, (script, wrapped.name))
    found.modules |= dict.fromkeys(listed.models, script)
    return found


def _wrapped(program: Program, bases: _Bases) -> Wrapping:
    found = program.followed.found
    result = Wrapping()
    roots = {root_of(module).made for module in found.trained}
    if not roots or not bases or (program.fully_sharded and len(roots) > 1):
        what = "no model is seen that is trained"
        if roots:
            what = f"{len(roots)} models are trained" if len(roots) > 1 else "the trained model is not seen by its name"
        result.problems.append(
            _of_optimizer(program, f"{what}: which forwards belong to which backward cannot be told")
        )
        return result
    for made, ones in _models(program, bases, roots):
        script, optimizer, base = ones[0]
        codes = {base.code for _, _, base in ones}
        files = {each for each, _, _ in ones}
        if len(codes) > 1 or len(files) > 1 or base.each_of or base.bound_at or not _is_plain(base.node):
            reason = f"the model goes by several names: {', '.join(sorted(codes))}"
            result.problems.append(Problem(script, optimizer.call, reason))
            return result
        at = [_moved(program, script, place(script, each.call, one), one) for _, each, one in ones]
        if len(roots) > 1:  # one model is wrapped again for another optimizer
            at = _once(
                program,
                [(each, _is_made(program, one.node)) for each, (_, _, one) in zip(at, ones, strict=True)],
                script,
            )
        result.models.append(
            Wrapped(made, base.code, _free(script, base.code), script, [each for _, _, each in ones], at)
        )
    result.models.sort(key=lambda each: (each.at[0].lineno, each.bases[0].node.lineno, each.bases[0].node.col_offset))
    _check(program, result, roots)
    if result.problems:
        return result
    for call in sorted(found.training_forwards, key=lambda node: node.lineno):
        for each in result.models:
            if each.made & found.called_models.get(call, set()):
                _call(program, result, found.forwards[call][0], called_model(call), each)
    for function, name in sorted(result.parameters, key=lambda each: (each[0].lineno, each[1])):  # type: ignore[attr-defined]
        _uses(program, result, function, name, result.parameters[function, name])
    return result


def _of_optimizer(program: Program, reason: str) -> Problem:
    """A problem at the first optimizer."""
    calls = program.followed.found.optimizer_calls
    first = program.scripts[0]
    script, node = next(iter((script, call) for call, script in calls.items()), (first, first.tree))
    return Problem(script, node, reason)


def _given(program: Program, bases: _Bases) -> _Bases:
    """The models as the calls know them that give them to the function which makes their optimizers; none where one of
    these cannot be seen, or gives nothing."""
    found: _Bases = []
    waiting = bases[::-1]
    seen: set[tuple[ast.AST, str]] = set()
    while waiting:
        script, optimizer, base = waiting.pop()
        function = _binder(script, base.node) if isinstance(base.node, ast.Name) else None
        if not isinstance(function, _FUNCTIONS) or base.code not in _parameters(function) or base.code != base.node.id:  # type: ignore[attr-defined]
            if (script, base.code, optimizer.call) not in [(other, one.code, each.call) for other, each, one in found]:
                found.append((script, optimizer, base))
            continue
        calls = program.followed.found.called_with.get(function, set())
        if not calls:
            return []
        for call, caller in () if (function, base.code) in seen else sorted(calls, key=lambda each: -each[0].lineno):
            given = argument(function, base.code, call, caller)
            if given is None:
                return []
            waiting.append(
                (caller, Optimizer(call, (Base(ast.unparse(given), given),), False), Base(ast.unparse(given), given))
            )
        seen.add((function, base.code))
    return found if found != bases else []


def _by_other_names(bases: _Bases) -> _Bases:
    """The models by their other names, as far as they have any."""
    found = [(script, by_other_name(script, optimizer, base), optimizer, base) for script, optimizer, base in bases]
    if all(other is None for _, other, _, _ in found):
        return []
    return [(script, *(other or (optimizer, base))) for script, other, optimizer, base in found]


def _kept(program: Program) -> _Bases:
    """The one model as an object keeps it that calls it in training, `self.model`, and that is given it once."""
    found = program.followed.found
    calls = sorted(found.training_forwards, key=lambda call: call.lineno)
    codes = {(found.forwards[call][0], ast.unparse(called_model(call))) for call in calls}
    model = called_model(calls[0]) if len(codes) == 1 else None
    if program.fully_sharded or not isinstance(model, ast.Attribute):
        return []
    script, code = codes.pop()
    owner, name = _class_of(script, calls[0]), model.attr
    stored = [
        (other, node)
        for other in program.scripts
        for node in other.find(ast.Attribute)
        if node.attr == name and not isinstance(node.ctx, ast.Load)
    ]
    if len(stored) != 1 or code != f"self.{name}" or any(_class_of(script, call) is not owner for call in calls):
        return []
    kept = script.statement(stored[0][1]) if stored[0][0] is script else None
    function = script.parents.get(kept) if kept is not None else None
    if not isinstance(kept, ast.Assign) or getattr(function, "name", "") != "__init__":
        return []
    assert isinstance(function, _FUNCTIONS)
    block, made = _block(script, kept), found.called_with.get(function, set())
    if _class_of(script, kept) is not owner or block[-1] is kept or len(made) != 1:
        return []
    base = Base(code, model)
    after: Any = block[block.index(kept) + 1]
    return [(script, Optimizer(after, (base,), False), base)]


_Bases: TypeAlias = list[tuple[Script, Optimizer, Base]]


def _models(program: Program, bases: _Bases, roots: set[ast.AST]) -> Iterator[tuple[frozenset[ast.AST], _Bases]]:
    """The models, and where optimizers are given the parameters of each: what goes by one name is one of several."""
    by_calls = not all(_is_made(program, base.node) for _, _, base in bases)
    if len(roots) == 1 or (by_calls and len({_name_of(each) for each in bases}) == 1):
        yield frozenset(roots), bases
        return
    for _, same in itertools.groupby(sorted(bases, key=_name_of), key=_name_of):
        ones = [*same]
        yield frozenset().union(*(_is_made(program, base.node) for _, _, base in ones)), ones


def _name_of(each: tuple[Script, Optimizer, Base]) -> tuple[str, str]:
    return str(each[0].path), each[2].code


def _is_made(program: Program, node: ast.expr) -> set[ast.AST]:
    """The trained model that an expression is a part of."""
    taken = program.followed.found.parameters_of.items()
    modules = {module for expression, each in taken for module in each if node in ast.walk(expression)}
    return {root_of(module).made for module in modules}


def _check(program: Program, result: Wrapping, roots: set[ast.AST]) -> None:
    """Refuse several models of which not all are seen by a name of their own, or whose gradients are not."""
    found = program.followed.found
    if len(roots) < 2:
        return
    known = [made for each in result.models for made in each.made]
    called = {made for call in found.training_forwards for made in found.called_models.get(call, ())}
    scopes = {each.script.scope(at) for each in result.models for at in each.at}
    reason = ""
    if {*known} != roots or len(known) > len(roots) or not all(each.made for each in result.models):
        reason = "and which of them are given to which optimizer cannot be told"
    elif any(_overlap(each, other, found) for each, other in itertools.combinations(result.models, 2)):
        reason = "and they have parts in common, whose gradients two wrappers would average"
    elif roots - called:
        missing = next(each.model for each in result.models if each.made - called)
        reason = f"and no call of `{missing}` is seen that a backward pass goes through"
    elif len(scopes) > 1 and len(result.models) > 1:
        reason = "and their optimizers are made in several functions"
    if reason:
        result.problems.append(_of_optimizer(program, f"{len(roots)} models are trained, {reason}"))


def _overlap(one: Wrapped, other: Wrapped, found: FlowFacts) -> bool:
    """Whether two models have a part in common."""
    roots = ({root_of(part).made, root_of(module).made} for part, module in found.shared)
    return any(pair & one.made and pair & other.made for pair in roots)


def _once(program: Program, places: list[tuple[ast.stmt, set[ast.AST]]], script: Script) -> list[ast.stmt]:
    """The statements of which each run passes one for each model: the first, those in other branches, and those behind
    a training, before which parameters may have been unfrozen.

    Args: where optimizers are made, with the calls that make what each trains, as far as these are known: a name may
    get another model.
    """
    found: dict[ast.stmt, set[ast.AST]] = {}
    for place, made in sorted(places, key=lambda each: each[0].lineno):
        if place in found:
            found[place] |= made
            continue
        before = [first for first in found if _is_run_with(script, first, place)]
        known = set().union(*(found[first] for first in before))
        if not before or not made or not made <= known or _trains_between(program, script, before[-1], place):
            found[place] = {*made}
    return [*found]


def _is_run_with(script: Script, first: ast.stmt, place: ast.stmt) -> bool:
    """Whether whatever runs a statement has run another one, above it, too."""
    return any(each in _block(script, first) for each in (place, *script.ancestors(place)))


def _trains_between(program: Program, script: Script, first: ast.stmt, place: ast.stmt) -> bool:
    """Whether a model is trained behind a statement and before another one, below it."""
    between = (each for each in _block(script, first) if first.lineno < each.lineno < place.lineno)
    return any(_trains(program, part) for each in between for part in ast.walk(each))


def _block(script: Script, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that are run with one, of the same block."""
    parent = script.parents[statement]
    blocks = (getattr(parent, name, ()) for name in ("body", "orelse", "finalbody"))
    return next(([*block] for block in blocks if isinstance(block, list) and statement in block), [statement])


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _bases(program: Program) -> Iterator[tuple[Script, Optimizer, Base]]:
    calls = _making(program)
    for script in program.scripts:
        for optimizer in optimizers(script):
            if optimizer.call in calls:
                for base in optimizer.bases:
                    yield script, optimizer, base


def _making(program: Program) -> set[ast.AST]:
    """The calls that make the optimizers, and those of the functions around them: one may hand over the parameters."""
    found = program.followed.found
    calls: set[ast.AST] = set()
    waiting = [*found.optimizer_calls.items()]
    while waiting:
        call, script = waiting.pop()
        if call not in calls:
            calls.add(call)
            waiting += found.called_with.get(script.scope(call), ())
    return calls


def _free(script: Script, code: str) -> str:
    owner, dot, last = code.rpartition(".")
    taken = {node.id for node in script.find(ast.Name)} | {node.attr for node in script.find(ast.Attribute)}
    name = f"ddp_{last}"
    while name in taken:
        name += "_"
    return f"{owner}{dot}{name}"


def _call(program: Program, result: Wrapping, script: Script, node: ast.expr, model: Wrapped) -> None:
    """Let an expression that is the model be the wrapper; one that is another of the models be that one's."""
    known = next((each for each in (model, *result.models) if _is_named(result, script, node, each)), None)
    if known is not None:
        result.calls[node] = (script, known.name)
        return
    binder = _binder(script, node) if isinstance(node, ast.Name) else None
    if isinstance(node, ast.Name) and isinstance(binder, _FUNCTIONS) and node.id in _parameters(binder):
        _parameter(program, result, binder, node.id, model)
        return
    reason = (
        f"`{ast.unparse(node)}` is called in training, {_UNFOLLOWED} to `{model.model}`, whose parameters are trained"
    )
    result.problems.append(Problem(script, node, reason))


def _is_named(result: Wrapping, script: Script, node: ast.expr, model: Wrapped) -> bool:
    """Whether an expression is the model by the name that its optimizer's parameters are taken by."""
    if script is not model.script or ast.unparse(node) != model.model:
        return False
    several = len({_scope_of(script, base) for base in model.bases}) > 1
    return any(
        _is_base(result, script, node, base) and (not several or _holds_still(script, node, base))
        for base in model.bases
    )


def _scope_of(script: Script, base: Base) -> ast.AST | None:
    """The function, file or class whose variable or attribute an optimizer is given the parameters of."""
    return _binder(script, base.node) if isinstance(base.node, ast.Name) else _class_of(script, base.node)


def _holds_still(script: Script, node: ast.expr, base: Base) -> bool:
    """Whether a name, below the optimizer that is given its parameters, holds the same model as there: each of several
    functions wraps its own."""
    if not isinstance(node, ast.Name):
        return True
    if script.scope(node) is not script.scope(base.node) or node.lineno < base.node.lineno:
        return False
    binder = _binder(script, node)
    around = [each for each in script.ancestors(node) if isinstance(each, ast.For | ast.While)]
    entered = [each for each in around if each not in script.ancestors(base.node)]
    for other in ast.walk(binder):
        written = isinstance(other, ast.Name) and other.id == node.id and not isinstance(other.ctx, ast.Load)
        if isinstance(other, ast.Name) and written and _binder(script, other) is binder:
            ends = script.statement(other).end_lineno or other.lineno
            if base.node.lineno < other.lineno and (ends < node.lineno or {*script.ancestors(other)} & {*entered}):
                return False
    return True


def _is_base(result: Wrapping, script: Script, node: ast.expr, base: Base) -> bool:
    """Whether an expression is what an optimizer is given the parameters of, in the same function or class."""
    if isinstance(base.node, ast.Attribute) or "." in base.code:
        return _class_of(script, node) is _class_of(script, base.node)
    if not isinstance(node, ast.Name) or not isinstance(base.node, ast.Name):
        return False
    binder = _binder(script, node)
    given = isinstance(binder, _FUNCTIONS) and node.id in _parameters(binder)
    return binder is _binder(script, base.node) and (not given or _binds_here(result, binder))


def _binds_here(result: Wrapping, function: ast.AST) -> bool:
    """Whether the wrappers are made in a function."""
    return any(function in each.script.ancestors(at) for each in result.models for at in each.at)


def _class_of(script: Script, node: ast.AST) -> ast.AST | None:
    return next((parent for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def _binder(script: Script, name: ast.Name) -> ast.AST:
    """The function, or the module, whose variable a name is."""
    for parent in script.ancestors(name):
        if isinstance(parent, _FUNCTIONS):
            declared = any(
                name.id in part.names and parent in script.ancestors(part) for part in script.find(ast.Global)
            )
            if not declared and (name.id in _parameters(parent) or name.id in bindings(script, parent)):
                return parent
    return script.tree


def _parameters(function: ast.AST) -> set[str]:
    assert isinstance(function, _FUNCTIONS)
    given = function.args
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


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
        given = argument(function, name, call, script)
        if given is None:
            result.problems.append(Problem(script, call, f"what this call gives for `{name}` cannot be seen"))
        else:
            _call(program, result, script, given, model)


def argument(function: ast.AST, name: str, call: ast.Call, script: Script) -> ast.expr | None:
    """What a call gives for a parameter."""
    assert isinstance(function, _FUNCTIONS)
    for word in call.keywords:
        if word.arg == name:
            return word.value
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return call.args[names.index(name)] if name in names and names.index(name) < len(call.args) else None


def _uses(program: Program, result: Wrapping, function: ast.AST, name: str, model: Wrapped) -> None:
    """The uses of a parameter that holds the wrapper."""
    script = next(each for each in program.scripts if function in each.parents)
    moves = {node for node in ast.walk(function) if is_move(node) and ast.unparse(node.func.value) == name}  # type: ignore[attr-defined]
    model.is_moved_later |= bool(moves)
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != name or node in result.calls:
            continue
        parent = script.parents[node]
        call = script.parents[parent] if isinstance(parent, ast.Attribute) else parent
        if not isinstance(node.ctx, ast.Load):
            if not (isinstance(parent, ast.Assign) and (parent.value in moves or _sets_mode(parent.value, name))):
                result.problems.append(Problem(script, node, f"`{name}` is given another value here, in training"))
        elif (
            (isinstance(parent, ast.Attribute) and (parent.attr in _SHARED or call in moves))
            or (
                isinstance(call, ast.Call)
                and called_model(call) is node
                and call in program.followed.found.training_forwards
            )
            or _is_handed_on(program, result, script, node, parent)
        ):
            continue
        else:
            result.modules[node] = script


def _sets_mode(node: ast.expr, name: str) -> bool:
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
        if (call, script) in calls and argument(function, name, call, script) is node:
            return True
    return False


_BRANCHES = (ast.If, ast.Try, ast.With)


def place(script: Script, call: ast.AST, base: Base) -> ast.stmt:
    """The statement before which a model is wrapped: that of its optimizer, or the branches around it."""
    best = at = script.statement(call)
    for parent in script.ancestors(at):
        if not isinstance(parent, _BRANCHES) or _assigns(parent, base.code):
            break
        if isinstance(parent, ast.If | ast.Try):
            best = parent
    return best


def _moved(program: Program, script: Script, at: ast.stmt, base: Base) -> ast.stmt:
    """The statement, or one behind those that move the model to its device later: `optimizer = …; model.to(device)`."""
    block = [] if program.fully_sharded else _block(script, at)  # an optimizer gets the parts of parameters
    for each, after in itertools.pairwise(block[block.index(at) :] if block else ()):
        value = each.value if isinstance(each, ast.Expr | ast.Assign) else None
        if isinstance(each, ast.For | ast.While | ast.With) or any(_trains(program, part) for part in ast.walk(each)):
            break
        if value is not None and is_move(value) and ast.unparse(value.func.value) == base.code:  # type: ignore[attr-defined]
            at = after
    return at


def _trains(program: Program, node: ast.AST) -> bool:
    """Whether a call trains a model, or is one of a function of the program, which may."""
    found = program.followed.found
    given = (call for calls in found.called_with.values() for call, _ in calls)
    return isinstance(node, ast.Call) and (node in found.training_forwards or any(node is call for call in given))


def _assigns(node: ast.AST, code: str) -> bool:
    stores = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return any(isinstance(part.ctx, ast.Store) and ast.unparse(part) == code for part in stores)
