"""What is written for `--resume`: around which loops, what they carry, what is restored; or why it cannot be."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..bindings import arguments
from ..called_modules import last_name
from ..script import KEPT, Script
from .held import local_objects, objects
from .iterators import Counted, counted
from .liveness import free_names, live_after, live_in, loaded, stored
from .obstacle import CannotResume, Obstacle
from .own_start import own_start
from .training import CallGraph, Loop
from .unkept import require_kept

_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)


@dataclass(frozen=True)
class Part:
    """One training. loops: what is made resumable, the outermost first, each with the variables that it carries.
    objects: the names that are restored before them. per_epoch: why checkpoints are written between the rounds of the
    outer loop alone. left: the variables that it hands on to what follows; None where no training does. counted: what
    the script takes items of by itself. start: the variables, and attributes, that a checkpoint of its own may decide.
    """

    loops: tuple[tuple[Loop, tuple[str, ...]], ...]
    objects: tuple[str, ...]
    per_epoch: Obstacle | None = None
    left: tuple[str, ...] | None = None
    counted: tuple[Counted, ...] = ()
    start: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What is written for each training of a program, or why nothing can be done."""

    parts: tuple[Part, ...] = ()
    obstacle: Obstacle | None = None


@lru_cache(maxsize=KEPT)
def plan(scripts: tuple[Script, ...]) -> Plan:
    """What to write for a program; the script that is started first."""
    training = CallGraph(scripts)
    found = [(each, each is not loop) for loop in training.outermost() for each in _trainings(training, loop)]
    nodes = [loop.node for loop, _ in found]
    entry = scripts[0]
    try:
        if not found:
            raise CannotResume(entry, entry.tree, "no loop that trains is in sight", "call it from the main script")
        first = [each for at, each in enumerate(found) if each[0].node not in nodes[:at]]
        parts = [_part(training, loop, again or loop.node in nodes[:-1]) for loop, again in first]
        _require_once(parts)
    except CannotResume as error:
        return Plan(obstacle=error.obstacle)
    return Plan(tuple(parts))


def _trainings(training: CallGraph, loop: Loop) -> list[Loop]:
    """The loop, or those within it where each of its rounds makes a model and trains it, as for the folds of a data
    set: what the rounds before have left is known then.
    """
    script, body = loop.script, loop.node.body
    if training.steps(loop) or not training.builds_all(script, body):
        return [loop]
    return [each for inner in training.loops(script, body) for each in _trainings(training, inner)]


def _require_once(parts: Sequence[Part]) -> None:
    loops = [loop for part in parts for loop, _ in part.loops]
    for at, loop in enumerate(loops):
        if loop.node in [each.node for each in loops[:at]]:
            text = "this loop trains alone, and in another place within another loop"
            raise CannotResume(loop.script, loop.node, text, "write it twice, or train once in a run")


def _part(training: CallGraph, outer: Loop, is_followed: bool) -> Part:
    built = training.builds_optimizer(outer.script, outer.node.body)
    if built is not None:
        text = "an optimizer is built anew within the loop that trains"
        raise CannotResume(outer.script, built, text, "build it before the loop, and change its param_groups")
    _require_followed(training, outer)
    require_kept(training, outer)
    takes = list(counted(training, outer, outer))
    held = tuple(objects(training, outer))
    found = [(outer, _carried(outer, outer, shared=_shared(training, outer)))]
    head = outer.node.iter if isinstance(outer.node, ast.For) else outer.node.test
    start = own_start(training, outer, {*held, *found[0][1]} - loaded(head))
    left = _left(outer) if is_followed else None
    while not training.steps(found[-1][0]):
        last = found[-1][0]
        try:
            inner = _inner(training, last)
            _require_followed(training, inner, [loop for loop, _ in found])
            takes += counted(training, outer, inner)
            again = _recomputed(training, last, inner, held)
            found.append((inner, _carried(inner, last, again, _shared(training, inner))))
        except CannotResume as error:
            return Part(
                tuple(found), held, error.obstacle if last is outer else None, left, tuple(dict.fromkeys(takes)), start
            )
    return Part(tuple(found), held, None, left, tuple(dict.fromkeys(takes)), start)


def _left(loop: Loop) -> tuple[str, ...]:
    """The variables that a loop assigns and that are read after it."""
    if isinstance(loop.node, ast.While):
        text = "another training follows this `while` loop"
        raise CannotResume(loop.script, loop.node, text, "write `for step in range(...)`, with a `break` in it")
    places, assigned = _assigned_before(loop.script, loop), stored(loop.node)
    surely = live_after(loop.scope, loop.node, runs_once=True) & assigned
    maybe = live_after(loop.scope, loop.node, runs_once=False) & assigned
    unbound = sorted(surely - set(places))
    if unbound:
        text = f"{unbound[0]} is read after this training, which a run that goes on in the next one passes over"
        raise CannotResume(loop.script, loop.node, text, f"give {unbound[0]} a value before the loop")
    return tuple(sorted(maybe & set(places)))


def _inner(training: CallGraph, outer: Loop) -> Loop:
    found = list(training.loops(outer.script, outer.node.body))
    if len(found) != 1:
        where = found[1] if found else outer
        text = "an epoch has several loops that train"
        raise CannotResume(where.script, where.node, text, "checkpoints are written between epochs")
    return found[0]


def _require_followed(training: CallGraph, loop: Loop, around: Sequence[Loop] = ()) -> None:
    """Rounds can be counted: those of a `for`, and of one `while`, whose test changes nothing."""
    if not isinstance(loop.node, ast.While):
        return
    remedy = "write `for step in range(...)`, with a `break` in it"
    if any(isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield)) for node in ast.walk(loop.node.test)):
        raise CannotResume(loop.script, loop.node, "the test of this `while` loop assigns what the loop uses", remedy)
    if training.trains(loop.script, [loop.node.test]):
        raise CannotResume(loop.script, loop.node, "the test of this `while` loop trains", "train in its body")
    if any(isinstance(each.node, ast.While) for each in around):
        raise CannotResume(loop.script, loop.node, "a `while` loop within another one that trains", remedy)


def _shared(training: CallGraph, loop: Loop) -> frozenset[str]:
    """The variables that functions which the loop calls assign by `global`.

    Raises:
        CannotResume: they are not those of the loop's own function, where they could be given back.
    """
    scope, found = loop.scope, set[str]()
    declared = {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
    for function in training.reached(loop.script, loop.node.body):
        own = stored(*function.node.body)
        for node in (each for each in ast.walk(function.node) if isinstance(each, ast.Global)):
            names = set(node.names) & own
            is_seen = function.script is loop.script
            unseen = names if not is_seen else set() if isinstance(scope, ast.Module) else names - declared
            if unseen:
                text = f"{', '.join(sorted(unseen))} is assigned in a function, where what it had cannot be given back"
                raise CannotResume(function.script, node, text, "return it, and assign it in the loop that trains")
            found |= names
        for shared in (each for each in ast.walk(function.node) if isinstance(each, ast.Nonlocal)):
            names = set(shared.names) & own
            of_loop = names & stored(*scope.body) if function.script is loop.script else set()
            if names - of_loop or isinstance(scope, ast.Module):
                text = f"{', '.join(sorted(names))} is assigned in a function, where what it had cannot be given back"
                raise CannotResume(function.script, shared, text, "keep it in an object, or assign it in the loop")
            found |= names
    return frozenset(found)


def _carried(
    loop: Loop, outer: Loop, again: frozenset[str] = frozenset(), shared: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The variables that a loop adds to, in the order of their first assignment.

    Args: the loop; the one around it; what that one's body makes before it of what training changes; the variables
    that called functions assign.
    """
    script, scope, body = loop.script, loop.scope, loop.node.body
    places = _assigned_before(script, loop)
    maybe, surely = live_in(scope, loop.node, runs_once=False), live_in(scope, loop.node, runs_once=True)
    assigned = stored(*body) | again | shared
    unbound = sorted((surely & stored(*body) | shared) - set(places))
    if unbound:
        text = f"{unbound[0]} may be read before it is assigned in this loop"
        raise CannotResume(script, loop.node, text, f"give {unbound[0]} a value before the loop")
    found = {name for name in maybe & assigned | shared if name in places}
    if loop is not outer:
        around = set(ast.walk(outer.node)) if scope is outer.scope else set(ast.walk(scope))
        own = {name for name in places if any(node in around for node in places[name])}
        found |= set(local_objects(script, loop, sorted(own & maybe)))
    summed = sorted(name for name in found & surely & _differentiated(body) if _is_summed(body, name))
    if summed:
        text = f"{summed[0]} is added up over several rounds before its backward pass"
        raise CannotResume(script, loop.node, text, "call backward() in each round: gradients add up too")
    same = {name for name in found - shared if _stays(script, [*body, *outer.node.body], name)}
    clocks = {name for name in found if _is_clock(script, places[name])}
    return tuple(sorted(found - clocks - same, key=lambda name: (min(_line(node) for node in places[name]), name)))


def _assigned_before(script: Script, loop: Loop) -> dict[str, list[ast.AST]]:
    """Where the variables of a loop's function get a value before the loop."""
    found: dict[str, list[ast.AST]] = {name: [loop.scope] for name in arguments(loop.scope)}
    shared = {name for node in ast.walk(loop.scope) if isinstance(node, ast.Global) for name in node.names}
    for node in script.find(ast.Name):
        if isinstance(node.ctx, ast.Store) and node.lineno < loop.node.lineno:
            around = script.scope(node)
            if around is loop.scope or (around is script.tree and node.id in shared):
                found.setdefault(node.id, []).append(node)
    return found


def _differentiated(body: Sequence[ast.stmt]) -> set[str]:
    """The variables of which sums and products go into a backward pass."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    calls = [
        node.func.value
        for node in nodes
        if isinstance(node, ast.Call) and last_name(node.func) == "backward" and isinstance(node.func, ast.Attribute)
    ]
    found: set[str] = set()
    waiting = [name for value in calls for name in loaded(value)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign)) and name in stored(node):
                parts = [node.value] if isinstance(node.value, (ast.BinOp, ast.Name)) else []
                waiting += [each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name)]
    return found


def _is_summed(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether something other than a number is added to a variable: `total += loss`, `total = total + loss`."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and name in stored(node):
            sums = isinstance(node, ast.AugAssign) or (isinstance(node.value, ast.BinOp) and name in loaded(node.value))
            calls = {last_name(each.func) for each in ast.walk(node.value) if isinstance(each, ast.Call)}
            if sums and not isinstance(node.value, ast.Constant) and not calls & {"item", "float", "int", "len"}:
                return True
    return False


def _is_clock(script: Script, places: Sequence[ast.AST]) -> bool:
    """Whether a variable gets nothing but times: those of this start are as good."""
    statements = [script.statement(node) for node in places if isinstance(node, ast.Name)]
    values = [node.value for node in statements if isinstance(node, ast.Assign)]
    return (
        bool(values)
        and len(values) == len(places)
        and all(
            isinstance(value, ast.Call) and script.qualified(value.func).split(".")[0] in ("time", "datetime")
            for value in values
        )
    )


def _stays(script: Script, body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a variable gets itself and nothing else: `model = model.train()`."""
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    found = [
        ast.unparse(script.statement(each)) for each in nodes if each.id == name and isinstance(each.ctx, ast.Store)
    ]
    return bool(found) and all(each in (f"{name} = {name}.train()", f"{name} = {name}.eval()") for each in found)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _recomputed(training: CallGraph, outer: Loop, inner: Loop, held: Sequence[str]) -> frozenset[str]:
    """What the outer loop's body makes, before the inner loop, of what training changes: it cannot be made again.

    Raises:
        CannotResume: the inner loop, in another function, cannot carry it.
    """
    script, body = outer.script, outer.node.body
    at = next(place for place, node in enumerate(body) if inner.node in _reached_nodes(training, script, node))
    head, tail = body[:at], body[at:]
    changing, found = set(held), set[str]()
    for _ in range(len(head)):
        for node in (inner for statement in head for inner in ast.walk(statement)):
            value = node.value if isinstance(node, _ASSIGNMENTS) else None
            if value is not None and _depends_on(training, script, value, changing):
                found |= stored(node)
        changing |= found
    found &= loaded(*tail)
    if found and (inner.script is not script or inner.scope is not outer.scope):
        name = min(found)
        line = next(node for node in head if name in stored(node))
        text = f"{name} is made of what training changes, and read after its steps"
        raise CannotResume(script, line, text, "checkpoints are written between epochs")
    return frozenset(found)


def _reached_nodes(training: CallGraph, script: Script, node: ast.stmt) -> set[ast.AST]:
    found = set(ast.walk(node))
    for each in training.reached(script, [node]):
        found |= set(ast.walk(each.node))
    return found


def _depends_on(training: CallGraph, script: Script, value: ast.expr, changing: set[str]) -> bool:
    if loaded(value) & changing:
        return True
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(free_names(each.node) & changing for call in calls for each in training.called(script, call))
