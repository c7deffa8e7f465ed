"""What is written for `--resume`: around which loops, what they carry, what is restored; or why it cannot be."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..bindings import arguments
from ..called_modules import last_name
from ..script import KEPT, Script
from .held import local_objects, objects
from .liveness import free_names, live_in, loaded, stored
from .training import Loop, Training

_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)


@dataclass(frozen=True)
class Obstacle:
    """Why a run could not go on: the file, the line, what is there, what to do instead."""

    script: Script
    line: int
    message: str
    remedy: str


class CannotResume(Exception):
    """Raised where the first obstacle is met."""

    def __init__(self, script: Script, node: ast.AST, message: str, remedy: str) -> None:
        self.obstacle = Obstacle(script, getattr(node, "lineno", 1), message, remedy)


@dataclass(frozen=True)
class Plan:
    """loops: what is made resumable, the outermost first, each with the variables that it carries. objects: the names
    that are restored before them. per_epoch: why checkpoints are written between the rounds of the outer loop alone.
    obstacle: why nothing can be done.
    """

    loops: tuple[tuple[Loop, tuple[str, ...]], ...] = ()
    objects: tuple[str, ...] = ()
    per_epoch: Obstacle | None = None
    obstacle: Obstacle | None = field(default=None)


@lru_cache(maxsize=KEPT)
def plan(scripts: tuple[Script, ...]) -> Plan:
    """What to write for a program; the script that is started first."""
    training = Training(scripts)
    try:
        outer = _outer(training)
        held = tuple(objects(training, outer))
        found = [(outer, _carried(outer, outer))]
        _require_alone(training, outer)
    except CannotResume as error:
        return Plan(obstacle=error.obstacle)
    while not training.steps(found[-1][0]):
        last = found[-1][0]
        try:
            inner = _inner(training, last)
            _require_alone(training, inner)
            found.append((inner, _carried(inner, last, _recomputed(training, last, inner, held))))
        except CannotResume as error:
            return Plan(tuple(found), held, error.obstacle if last is outer else None)
    return Plan(tuple(found), held)


def _outer(training: Training) -> Loop:
    found = training.outermost()
    entry = training.scripts[0]
    if not found:
        raise CannotResume(entry, entry.tree, "no loop that trains is in sight", "call it from the main script")
    if len(found) > 1:
        text = f"a second training begins here, after that of line {found[0].node.lineno}"
        raise CannotResume(found[1].script, found[1].node, text, "train once in a run, each in a script of its own")
    loop = found[0]
    built = training.builds_optimizer(loop.script, loop.node.body)
    if built is not None:
        text = "an optimizer is built anew within the loop that trains"
        raise CannotResume(loop.script, built, text, "build it before the loop, and change its param_groups")
    _require_for(loop)
    return loop


def _inner(training: Training, outer: Loop) -> Loop:
    found = list(training.loops(outer.script, outer.node.body))
    if len(found) != 1:
        where = found[1] if found else outer
        text = "an epoch has several loops that train"
        raise CannotResume(where.script, where.node, text, "checkpoints are written between epochs")
    _require_for(found[0])
    return found[0]


def _require_for(loop: Loop) -> None:
    if isinstance(loop.node, ast.While):
        text = "how often a `while` loop has run is not known"
        raise CannotResume(loop.script, loop.node, text, "write `for step in range(...)`, with a `break` in it")


def _require_alone(training: Training, loop: Loop) -> None:
    """Its items come from what it loops over, and nothing else is used up from one round to the next."""
    reached = [(loop.script, loop.node.body)]
    reached += [(each.script, each.node.body) for each in training.reached(loop.script, loop.node.body)]
    for script, body in reached:
        own = stored(*body)
        for node in (inner for statement in body for inner in ast.walk(statement)):
            if _takes_an_item(script, node) and (body is loop.node.body or not _is_own(node, own)):
                text = "next() takes items that a run which goes on would have to take again"
                raise CannotResume(script, node, text, "loop over them with `for`")
            if isinstance(node, ast.Global) and body is not loop.node.body:
                names = ", ".join(sorted(set(node.names) & own))
                if names:
                    text = f"{names} is assigned in a function, where what it had cannot be given back"
                    raise CannotResume(script, node, text, "return it, and assign it in the loop that trains")


def _takes_an_item(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.qualified(node.func) == "next" and bool(node.args)


def _is_own(call: ast.AST, own: frozenset[str]) -> bool:
    """Whether the iterator of a call of next() is made where it is used."""
    return isinstance(call, ast.Call) and isinstance(call.args[0], ast.Name) and call.args[0].id in own


def _carried(loop: Loop, outer: Loop, again: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The variables that a loop adds to, in the order of their first assignment.

    Args: the loop; the outermost one; what the outer loop's body makes before the inner one of what training changes.
    """
    assert isinstance(loop.node, ast.For)
    script, scope, body = loop.script, loop.scope, loop.node.body
    places = _assigned_before(script, loop)
    maybe, surely = live_in(scope, loop.node, runs_once=False), live_in(scope, loop.node, runs_once=True)
    assigned = stored(*body) | again
    unbound = sorted((surely & stored(*body)) - set(places))
    if unbound:
        text = f"{unbound[0]} may be read before it is assigned in this loop"
        raise CannotResume(script, loop.node, text, f"give {unbound[0]} a value before the loop")
    found = {name for name in maybe & assigned if name in places}
    if loop is not outer:
        around = set(ast.walk(outer.node)) if scope is outer.scope else set(ast.walk(scope))
        own = {name for name in places if any(node in around for node in places[name])}
        found |= set(local_objects(script, loop, sorted(own & maybe)))
    summed = sorted(name for name in found & _differentiated(body) if not _is_number(body, name))
    if summed:
        text = f"{summed[0]} is added up over several rounds before its backward pass"
        raise CannotResume(script, loop.node, text, "call backward() in each round: gradients add up too")
    clocks = {name for name in found if _is_clock(script, places[name])}
    return tuple(sorted(found - clocks, key=lambda name: (min(_line(node) for node in places[name]), name)))


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


def _is_number(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a variable gets nothing but numbers: a constant, or what `.item()` or float() gave."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    given = [node.value for node in nodes if isinstance(node, (ast.Assign, ast.AugAssign)) and name in stored(node)]
    calls = [[last_name(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)] for value in given]
    plain = [isinstance(value, ast.Constant) for value in given]
    return all(is_plain or {"item", "float", "int"} & set(names) for is_plain, names in zip(plain, calls, strict=True))


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


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _recomputed(training: Training, outer: Loop, inner: Loop, held: Sequence[str]) -> frozenset[str]:
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


def _reached_nodes(training: Training, script: Script, node: ast.stmt) -> set[ast.AST]:
    found = set(ast.walk(node))
    for each in training.reached(script, [node]):
        found |= set(ast.walk(each.node))
    return found


def _depends_on(training: Training, script: Script, value: ast.expr, changing: set[str]) -> bool:
    if loaded(value) & changing:
        return True
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(free_names(each.node) & changing for call in calls for each in training.called(script, call))
