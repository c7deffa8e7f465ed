"""Models that training takes one after the other from a list: `for net, optimizer in zip(nets, optimizers)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..bindings import bindings
from ..called_modules import called_model
from ..script import Script
from .program import Program
from .values import root_of


@dataclass(frozen=True)
class Listed:
    """A list of all trained models. made: the statement that makes it. at: that before which its models are wrapped.
    takes: where training loops take them from it. models: uses of their variables that need the model.
    """

    script: Script
    name: ast.Name
    made: ast.Assign
    at: ast.stmt
    takes: tuple[ast.Name, ...]
    models: tuple[ast.Name, ...]


def listed_models(program: Program, shared: frozenset[str]) -> Listed | None:
    """The list that training takes each trained model from; None where it takes one from anywhere else.

    Args: the program; the attributes that a wrapper has as the model has them.
    """
    found = program.followed.found
    roots = {root_of(module).made for module in found.trained}
    forwards = sorted(found.training_forwards, key=lambda call: call.lineno)
    scripts = {found.forwards[call][0] for call in forwards if call in found.forwards}
    if len(scripts) != 1 or any(call not in found.forwards for call in forwards):
        return None
    script = scripts.pop()
    loops: dict[ast.For, ast.Name] = {}
    for call in forwards:
        taken = _loop(script, called_model(call))
        if taken is None or found.called_models.get(call) != roots:
            return None
        loops[taken[0]] = taken[1]
    takes = [*loops.values()]
    made = _list(script, takes)
    if made is None or not _holds_each_once(made.value, roots):
        return None
    at = _place(script, made, {call for call, other in found.optimizer_calls.items() if other is script})
    uses = [*_uses(script, {called_model(call) for call in forwards}, loops, shared)]
    if at is None or None in uses:
        return None
    return Listed(script, takes[0], made, at, tuple(takes), tuple(each for each in uses if each is not None))


def _loop(script: Script, model: ast.expr) -> tuple[ast.For, ast.Name] | None:
    """The loop whose variable is a model, and the list that it takes it from."""
    if not isinstance(model, ast.Name):
        return None
    for parent in script.ancestors(model):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(parent, ast.For) and (taken := _taken(parent.target, parent.iter, model.id)) is not None:
            return parent, taken
    return None


def _taken(target: ast.expr, over: ast.expr, name: str) -> ast.Name | None:
    """The list that a loop's variable comes from: `nets` of `for i, (net, l) in enumerate(zip(nets, losses))`."""
    if isinstance(target, ast.Name):
        return over if target.id == name and isinstance(over, ast.Name) else None
    how = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else ""
    if not isinstance(target, ast.Tuple) or not isinstance(over, ast.Call) or how not in ("zip", "enumerate"):
        return None
    parts = target.elts[1:] if how == "enumerate" else target.elts
    return next((each for part, of in zip(parts, over.args, strict=False) if (each := _taken(part, of, name))), None)


def _list(script: Script, takes: list[ast.Name]) -> ast.Assign | None:
    """The statement that makes a list which nothing changes later."""
    name, scope = takes[0].id, script.scope(takes[0])
    nodes = [node for node in script.find(ast.Name) if node.id == name]
    made = bindings(script, scope).get(name, [])
    if (
        len(made) != 1
        or {each.id for each in takes} != {name}
        or any(script.scope(each) is not scope for each in nodes)
    ):
        return None
    assign = script.parents[made[0]]
    if not isinstance(assign, ast.Assign) or len(assign.targets) > 1 or not isinstance(assign.targets[0], ast.Name):
        return None
    read = [node for node in nodes if node is not assign.targets[0]]
    return assign if all(_only_reads(script, node) for node in read) else None


def _only_reads(script: Script, node: ast.Name) -> bool:
    parent = script.parents[node]
    if isinstance(parent, ast.For | ast.comprehension):
        return parent.iter is node
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in ("zip", "enumerate", "len")
    return isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load)


def _holds_each_once(made: ast.expr, roots: set[ast.AST]) -> bool:
    """Whether a list has each of the trained models, once, and nothing else."""
    if isinstance(made, ast.ListComp):
        return roots == {made.elt} and len(made.generators) == 1
    if not isinstance(made, ast.List) or len(made.elts) != len(roots):
        return False
    plain = all(isinstance(each, ast.Name) or each in roots for each in made.elts)
    return plain and len({*map(ast.dump, made.elts)} | {each for each in made.elts if each in roots}) >= len(roots)


def _place(script: Script, made: ast.Assign, optimizers: set[ast.Call]) -> ast.stmt | None:
    """The statement before which the models are wrapped: that of the first optimizer, or the one behind the list."""
    parent = script.parents[made]
    blocks = (getattr(parent, name, ()) for name in ("body", "orelse", "finalbody"))
    block = next((each for each in blocks if isinstance(each, list) and made in each), [made])
    behind = block[block.index(made) + 1 :]
    first = next((each for each in behind if any(node in optimizers for node in ast.walk(each))), None)
    return first or next(iter(behind), None)


def _uses(
    script: Script, called: set[ast.expr], loops: dict[ast.For, ast.Name], shared: frozenset[str]
) -> Iterator[ast.Name | None]:
    """The uses of the loops' variables that need the model; None for one outside of a loop that sets it."""
    scope = script.scope(next(iter(loops)))
    names = {node.id for node in called if isinstance(node, ast.Name)}
    for node in script.find(ast.Name):
        if node.id not in names or script.scope(node) is not scope or node in called:
            continue
        around = next((each for each in script.ancestors(node) if node.id in _variables(each)), None)
        if around is None or not (isinstance(node.ctx, ast.Load) or node in _targets(around)):
            yield None
        elif around in loops and isinstance(node.ctx, ast.Load):
            parent = script.parents[node]
            if not isinstance(parent, ast.Attribute) or parent.attr not in shared:
                yield node


def _targets(loop: ast.AST) -> list[ast.AST]:
    """What a loop or a comprehension sets."""
    parts = [loop] if isinstance(loop, ast.For) else getattr(loop, "generators", ())
    return [node for part in parts for node in ast.walk(part.target)]


def _variables(loop: ast.AST) -> set[str]:
    return {node.id for node in _targets(loop) if isinstance(node, ast.Name)}
