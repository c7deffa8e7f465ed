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
from .liveness import free_names, live_after, live_in, loaded, stored
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
class Part:
    """One training. loops: what is made resumable, the outermost first, each with the variables that it carries.
    objects: the names that are restored before them. per_epoch: why checkpoints are written between the rounds of the
    outer loop alone. left: the variables that it hands on to what follows; None where no training does.
    """

    loops: tuple[tuple[Loop, tuple[str, ...]], ...]
    objects: tuple[str, ...]
    per_epoch: Obstacle | None = None
    left: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Plan:
    """What is written for each training of a program, or why nothing can be done; where it goes on by itself."""

    parts: tuple[Part, ...] = ()
    obstacle: Obstacle | None = None
    goes_on: Obstacle | None = None


@lru_cache(maxsize=KEPT)
def plan(scripts: tuple[Script, ...]) -> Plan:
    """What to write for a program; the script that is started first."""
    training = Training(scripts)
    found = training.outermost()
    nodes = [loop.node for loop in found]
    entry = scripts[0]
    try:
        if not found:
            raise CannotResume(entry, entry.tree, "no loop that trains is in sight", "call it from the main script")
        first = [loop for at, loop in enumerate(found) if loop.node not in nodes[:at]]
        parts = [_part(training, loop, loop.node in nodes[:-1]) for loop in first]
        _require_once(parts)
        goes_on = _goes_on_by_itself(scripts)
    except CannotResume as error:
        return Plan(obstacle=error.obstacle)
    return Plan(tuple(parts), goes_on=goes_on)


def _require_once(parts: Sequence[Part]) -> None:
    loops = [loop for part in parts for loop, _ in part.loops]
    for at, loop in enumerate(loops):
        if loop.node in [each.node for each in loops[:at]]:
            text = "this loop trains alone, and in another place within another loop"
            raise CannotResume(loop.script, loop.node, text, "write it twice, or train once in a run")


def _goes_on_by_itself(scripts: Sequence[Script]) -> Obstacle | None:
    """Where a script loads an optimizer's state, to go on from a checkpoint of its own.

    Raises:
        CannotResume: it does so whenever there is a file.
    """
    remedy = "leave one of them out: its checkpoints are of whole epochs, those of --resume of steps"
    for script in scripts:
        optimized = {last_name(node.value) for node in script.find(ast.Attribute) if node.attr == "zero_grad"}
        for call in script.find(ast.Call):
            loads = isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
            if not loads or last_name(call.func.value) not in optimized:  # type: ignore[attr-defined]
                continue
            tests = [ast.unparse(each.test) for each in script.ancestors(call) if isinstance(each, ast.If)]
            text = "the script goes on from a checkpoint of its own here"
            if any("exists(" in test or "isfile(" in test or "is_file(" in test for test in tests[:1]) and not any(
                "args" in test or "opt" in test for test in tests[1:] or tests
            ):
                raise CannotResume(script, call, text, remedy)
            return Obstacle(script, call.lineno, text, remedy)
    return None


def _part(training: Training, outer: Loop, is_followed: bool) -> Part:
    built = training.builds_optimizer(outer.script, outer.node.body)
    if built is not None:
        text = "an optimizer is built anew within the loop that trains"
        raise CannotResume(outer.script, built, text, "build it before the loop, and change its param_groups")
    _require_for(outer)
    held = tuple(objects(training, outer))
    found = [(outer, _carried(outer, outer))]
    _require_alone(training, outer)
    left = _left(outer) if is_followed else None
    while not training.steps(found[-1][0]):
        last = found[-1][0]
        try:
            inner = _inner(training, last)
            _require_alone(training, inner)
            found.append((inner, _carried(inner, last, _recomputed(training, last, inner, held))))
        except CannotResume as error:
            return Part(tuple(found), held, error.obstacle if last is outer else None, left)
    return Part(tuple(found), held, None, left)


def _left(loop: Loop) -> tuple[str, ...]:
    """The variables that a loop assigns and that are read after it."""
    assert isinstance(loop.node, ast.For)
    places, assigned = _assigned_before(loop.script, loop), stored(loop.node)
    surely = live_after(loop.scope, loop.node, runs_once=True) & assigned
    maybe = live_after(loop.scope, loop.node, runs_once=False) & assigned
    unbound = sorted(surely - set(places))
    if unbound:
        text = f"{unbound[0]} is read after this training, which a run that goes on in the next one passes over"
        raise CannotResume(loop.script, loop.node, text, f"give {unbound[0]} a value before the loop")
    return tuple(sorted(maybe & set(places)))


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
    summed = sorted(name for name in found & surely & _differentiated(body) if _is_summed(body, name))
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
