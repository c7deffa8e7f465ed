"""Which models are wrapped, where, and which names then hold the wrappers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import lru_cache

from ..all_ways import in_other_branch
from ..called_modules import called_model
from ..eager import is_move
from ..missing_imports import found_beside
from ..optimizers import Optimizer
from ..script import Script
from ..trained_modules import Base
from .assigned_parameters import assigned_parameters
from .born_frozen import may_begin_frozen
from .early_calls import keep_bare
from .frames import FlowFacts, Problem
from .given_to_callers import given_to_callers
from .listed_models import Listed, listed_models
from .models_of_optimizers import (
    Bases,
    by_other_names,
    given_by_callers,
    given_by_themselves,
    given_models,
    kept_by_object,
)
from .moved_models import changes_tensors, changes_type, is_moved, moved_behind, moves
from .penalties import penalizes
from .program import Program
from .scopes import FUNCTIONS, binder_of
from .training import FROZEN_LATE
from .uncalled import uncalled
from .values import root_of
from .wrapped_names import SHARED, UNFOLLOWED, Wrapped, Wrapping, follow_call, follow_uses
from .wrapping_place import is_frozen_by, is_initialized, is_kept_there, knows_all, moved_on, once, place, seen_from

_CALLERS = 3  # how many functions give a model to each other that one of them makes
_PENALTY = "a penalty takes parameters that the forward may leave out, whose gradients the wrapper would count twice"
_INITIALIZED = "apex.amp changes the model here, which has to be done before it is wrapped, where its optimizer is made"
_OTHER_TYPE = "the model gets numbers of another type after it was wrapped, which the wrapper does not see"


@lru_cache(maxsize=4)  # asked for each file of a program
def wrapping(program: Program) -> Wrapping:
    """Decide where the trained models of a program are wrapped: before their optimizers are made; where training does
    not know them by the names that these are given, before the function is called that makes one, where the object that
    calls the model is given it, or behind the call that gives it back.
    """
    bases = list(given_models(program))
    result = _wrapped(program, bases)
    if any(UNFOLLOWED in each.reason for each in result.problems):
        for others in filter(None, _otherwise(program, bases)):
            again = _wrapped(program, others)
            if not again.problems:
                return again
        result.problems = _changed_there(program, result) or result.problems
    found = program.followed.found
    may_be_listed = not program.fully_sharded and not found.frozen_at_times and not found.late_freezes
    listed = listed_models(program, SHARED) if result.problems and may_be_listed else None
    return result if listed is None else _of_list(program, listed)


def _changed_there(program: Program, result: Wrapping) -> list[Problem]:
    """Models that a function changes before it makes their optimizers, which their callers train."""
    reason = "`{}` gets other layers, or another type, where its optimizer is made, and is trained elsewhere"
    places = [(each, at) for each in result.models for at in each.at]
    return [
        Problem(each.script, at, reason.format(each.model))
        for each, at in places
        if isinstance(each.script.scope(at), FUNCTIONS) and each.script.scope(at) in program.followed.found.changing
    ]


def _otherwise(program: Program, bases: Bases) -> Iterator[Bases]:
    """The models as others know them than the functions that make their optimizers."""
    by_callers = given_by_callers(program, bases)
    yield from (by_callers, kept_by_object(program), by_other_names(program, bases))
    yield given_by_themselves(program, bases)
    given = by_callers or bases
    for _ in range(_CALLERS):
        given = given_to_callers(program, given)
        yield given


def _of_list(program: Program, listed: Listed) -> Wrapping:
    """Models that training takes from a list: so are their wrappers."""
    script, code = listed.script, listed.name.id
    roots = frozenset(root_of(module).made for module in program.followed.found.trained)
    wrapped = Wrapped(roots, code, _free(script, code), script, [Base(code, listed.name)], [listed.at], "each")
    wrapped.leaves_out = bool(roots & program.followed.found.unused)
    found = Wrapping([wrapped])
    found.calls |= dict.fromkeys(listed.takes, (script, wrapped.name))
    found.modules |= dict.fromkeys(listed.models, script)
    return found


def _wrapped(program: Program, bases: Bases) -> Wrapping:
    found = program.followed.found
    result = Wrapping()
    roots = {root_of(module).made for module in found.trained}
    if not roots or not bases or (program.fully_sharded and len(roots) > 1):
        if not (roots or found.backwards) and (never := uncalled(program.scripts)) is not None:
            result.problems.append(Problem(program.scripts[0], *never))
            return result
        what = f"no model is seen that is trained{_unfound(program)}"
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
        places: list[tuple[ast.stmt, set[ast.AST]]] = []
        for _, by, one in ones:
            part = roots if len(roots) == 1 else _made_by(program, by, one)
            places += [(at, part) for at in _places(program, script, by, one)]
        at = once(program, places, script, base.code)
        wrapped = Wrapped(made, base.code, _free(script, base.code), script, [each for _, _, each in ones], at)
        wrapped.leaves_out = bool(made & found.unused)
        sides = {is_kept_there(by.call, base.code) for _, by, _ in ones}
        if len(sides) > 1:
            reason = f"some statements give `{base.code}` with its optimizer, others make an optimizer of it"
            result.problems.append(Problem(script, optimizer.call, reason))
            return result
        wrapped.side = "after" if True in sides else "before"
        named = {base.code}.union(*(by.moved_as for _, by, _ in ones))
        for place_, code in itertools.product(at, sorted(named)):
            above = {*ast.walk(place_)} if wrapped.side == "after" else set()
            behind = [each for each in moved_behind(program, script, place_, code) if each not in above]
            moved = bool(above) and moves(program, script, place_, base.code)
            moved = moved or is_moved(program, script, place_, base, made)
            wrapped.is_moved_later |= any(map(is_move, behind)) or not moved
            result.problems += [Problem(script, each, _OTHER_TYPE) for each in behind if changes_type(each)]
        result.models.append(wrapped)
    result.models.sort(key=lambda each: (each.at[0].lineno, each.bases[0].node.lineno, each.bases[0].node.col_offset))
    _check(program, result, roots)
    if result.problems:
        return result
    for call in sorted(found.training_forwards, key=lambda node: node.lineno):
        for each in result.models:
            if each.made & found.called_models.get(call, set()):
                follow_call(program, result, found.forwards[call][0], called_model(call), each)
    for function, name in sorted(result.parameters, key=lambda each: (each[0].lineno, each[1])):  # type: ignore[attr-defined]
        follow_uses(program, result, function, name, result.parameters[function, name])
    for each in result.models:
        if each.side == "after":
            each.at = [at for at in each.at if _is_trained_from(result, each, at)] or each.at
    result.problems += [*keep_bare(program, result), *assigned_parameters(program, result)]
    result.problems += [*_frozen_late(program, result), *_unseen(result), *_penalized(program, result)]
    result.problems += _initialized_late(program, result)
    return result


def _is_trained_from(result: Wrapping, model: Wrapped, at: ast.stmt) -> bool:
    """Whether training calls the model that a variable is given by a statement; another may be for a test alone."""
    script, name = model.script, model.bases[0].node
    if not isinstance(name, ast.Name):
        return True
    calls = [call for call, called in result.calls.items() if called == (script, model.name)]
    here = (call for call in calls if isinstance(call, ast.Name) and binder_of(script, call) is script.scope(at))
    return any(not in_other_branch(script, call, at) for call in here)


def _places(program: Program, script: Script, optimizer: Optimizer, base: Base) -> list[ast.stmt]:
    """The statements before which a model is wrapped, or the one behind which it is."""
    if optimizer.given_by and isinstance(optimizer.call, ast.stmt):
        return [_behind_moves(script, optimizer.call, base.code)]
    calls = seen_from(program, script, optimizer.call, base)
    return [moved_on(program, script, place(program, script, call, base), base) for call in calls]


def _behind_moves(script: Script, at: ast.stmt, code: str) -> ast.stmt:
    """The statement that takes a model, or the last of those right behind it that do no more than move it."""
    block = script.block(at)
    for each in block[block.index(at) + 1 :]:
        value = each.value if isinstance(each, ast.Expr | ast.Assign) else None
        targets = each.targets if isinstance(each, ast.Assign) else []
        if not (isinstance(value, ast.Call) and is_move(value) and changes_tensors(value, code)):
            break
        if any(ast.unparse(target) != code for target in targets):
            break
        at = each
    return at


def _unfound(program: Program) -> str:
    """Which module of the program is not found, that may make the model."""
    for script in program.scripts:
        if name := found_beside(script):
            file = f"{script.path.parent.name}/{script.path.name}"
            return f" ({name}, which {file} imports, is not found: give ddpify the PYTHONPATH that the script needs)"
    return ""


def _initialized_late(program: Program, result: Wrapping) -> Iterator[Problem]:
    """Where apex.amp gets a model that is wrapped before: it gives parameters another type, or the forward another
    one, and takes no wrapper."""
    found = program.followed.found
    for call, made in found.by_apex.items():
        script = found.scripts[call]
        for each in result.models:
            wrapped_here = each.script is script and all(is_initialized(script, call, at) for at in each.at)
            if each.made & made and not wrapped_here:
                yield Problem(script, call, _INITIALIZED)


def _penalized(program: Program, result: Wrapping) -> Iterator[Problem]:
    """Where parameters that the forward leaves out are in the loss all the same, by a penalty: the wrapper would count
    their gradients twice."""
    if penalizes(program.scripts):
        yield from (Problem(each.script, each.at[0], _PENALTY) for each in result.models if each.leaves_out)


def _unseen(result: Wrapping) -> Iterator[Problem]:
    """Where a wrapper is made in a function that does not make the model, and is called outside of that function."""
    for each in result.models:
        names = {base.node for base in each.bases if isinstance(base.node, ast.Name)}
        for at in each.at:
            functions = [around for around in each.script.ancestors(at) if isinstance(around, FUNCTIONS)]
            own = {binder_of(each.script, name) for name in names} if functions else set()
            if not own or functions[0] in own:
                continue
            calls = [
                call for call, (script, name) in result.calls.items() if name == each.name and script is each.script
            ]
            if any(functions[0] not in each.script.ancestors(call) for call in calls):
                yield Problem(
                    each.script, at, f"the optimizer of `{each.model}` is made in a function that is not given it"
                )


def _of_optimizer(program: Program, reason: str) -> Problem:
    """A problem at the first optimizer."""
    calls = program.followed.found.optimizer_calls
    first = program.scripts[0]
    script, node = next(iter((script, call) for call, script in calls.items()), (first, first.tree))
    return Problem(script, node, reason)


def _models(program: Program, bases: Bases, roots: set[ast.AST]) -> Iterator[tuple[frozenset[ast.AST], Bases]]:
    """The models, and where optimizers are given the parameters of each: what goes by one name is one of several."""
    by_calls = not all(_made_by(program, by, base) for _, by, base in bases)
    if len(roots) == 1 or (by_calls and len({_name_of(each) for each in bases}) == 1):
        yield frozenset(roots), bases
        return
    for _, same in itertools.groupby(sorted(bases, key=_name_of), key=_name_of):
        ones = [*same]
        made = (_made_by(program, by, base) or _is_given(program, base.node) for _, by, base in ones)
        yield frozenset().union(*made), ones


def _name_of(each: tuple[Script, Optimizer, Base]) -> tuple[str, str]:
    return str(each[0].path), each[2].code


def _made_by(program: Program, optimizer: Optimizer, base: Base) -> set[ast.AST]:
    """The trained model that a base is: one that a function gives back is that of the optimizer made there."""
    given = optimizer.bases if optimizer.given_by else ()
    return _is_made(program, base.node).union(*(_is_made(program, each.node) for each in given))


def _is_made(program: Program, node: ast.expr) -> set[ast.AST]:
    """The trained model that an expression is a part of."""
    found = program.followed.found
    modules = {module for taken, each in found.parameters_of.items() for module in each if node in ast.walk(taken)}
    called = (made for call, made in found.called_models.items() if called_model(call) is node)
    return {root_of(module).made for module in modules}.union(*called)


def _is_given(program: Program, node: ast.expr) -> set[ast.AST]:
    """The trained model that a function is given by an expression, which makes its optimizer."""
    found = program.followed.found
    given = {root_of(module).made for module in found.given_networks.get(node, ())}
    return given & {root_of(module).made for module in found.trained}


def _check(program: Program, result: Wrapping, roots: set[ast.AST]) -> None:
    """Refuse several models of which not all are seen by a name of their own, or whose gradients are not."""
    found = program.followed.found
    if len(roots) < 2:
        return
    known = [made for each in result.models for made in each.made]
    called = {made for call in found.training_forwards for made in found.called_models.get(call, ())}
    reason = ""
    if {*known} != roots or len(known) > len(roots) or not all(each.made for each in result.models):
        reason = "and which of them are given to which optimizer cannot be told"
    elif any(_overlap(each, other, found) for each, other in itertools.combinations(result.models, 2)):
        reason = "and they have parts in common, whose gradients two wrappers would average"
    elif roots - called:
        missing = next(each.model for each in result.models if each.made - called)
        reason = f"and no call of `{missing}` is seen that a backward pass goes through"
    if reason:
        result.problems.append(_of_optimizer(program, f"{len(roots)} models are trained, {reason}"))


def _frozen_late(program: Program, result: Wrapping) -> Iterator[Problem]:
    """Where parameters are frozen or unfrozen behind the wrapper of their model."""
    found = program.followed.found
    begin_frozen = bool(found.thawed) and may_begin_frozen(program.scripts)
    for each in result.models:
        known = not program.fully_sharded and all(knows_all(program, each, at) for at in each.at)
        at_times = each.made & found.frozen_at_times
        if at_times and (not known or at_times & found.thawed_first or (begin_frozen and at_times & found.thawed)):
            yield Problem(each.script, each.at[0], FROZEN_LATE)
        for node, freeze in found.late_freezes.items():
            blocks = [(each.script.block(at), at) for at in each.at] if each.made & freeze.models else []
            if at_times or all(is_frozen_by(program, freeze, block[: block.index(at)]) for block, at in blocks):
                continue
            if freeze.thaws or not known:
                yield Problem(freeze.script, node, FROZEN_LATE)
            each.leaves_out = True


def _overlap(one: Wrapped, other: Wrapped, found: FlowFacts) -> bool:
    """Whether two models have a part in common."""
    roots = ({root_of(part).made, root_of(module).made} for part, module in found.shared)
    return any(pair & one.made and pair & other.made for pair in roots)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _free(script: Script, code: str) -> str:
    owner, dot, last = code.rpartition(".")
    taken = {node.id for node in script.find(ast.Name)} | {node.attr for node in script.find(ast.Attribute)}
    name = f"ddp_{last}"
    while name in taken:
        name += "_"
    return f"{owner}{dot}{name}"
