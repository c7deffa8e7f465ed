"""A sampler that a script leaves open: `sampler = None`, `DataLoader(…, shuffle=sampler is None, sampler=sampler)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .bindings import arguments, bindings
from .script import Script


@dataclass(frozen=True)
class UnsetSampler:
    """The `None` that a loader's sampler is. shuffles: whether the loader then draws in a random order."""

    none: ast.expr
    dataset: ast.Name
    shuffles: bool


def unset_sampler(script: Script, call: ast.Call) -> UnsetSampler | None:
    """The sampler of a call of DataLoader that is always None, where the name that it has is used for this loader
    alone, and the data set has its name before; None for anything else."""
    words = {word.arg: word.value for word in call.keywords}
    name, dataset = words.get("sampler"), call.args[0] if call.args else words.get("dataset")
    if not isinstance(name, ast.Name) or not isinstance(dataset, ast.Name) or len(call.args) > 2 or None in words:
        return None
    scope = script.scope(call)
    made = bindings(script, scope).get(name.id, [])
    if len(made) != 1 or not isinstance(made[0], ast.Constant) or made[0].value is not None:
        return None
    assign = script.parents[made[0]]
    shuffle = words.get("shuffle")
    is_unset = shuffle is not None and ast.unparse(shuffle) == f"{name.id} is None"
    in_order = shuffle is None or (isinstance(shuffle, ast.Constant) and shuffle.value is False)
    if not isinstance(assign, ast.Assign) or len(assign.targets) > 1 or not (is_unset or in_order):
        return None
    own = {assign.targets[0], *ast.walk(call)}
    others = [node for node in script.find(ast.Name) if node.id == name.id and node not in own]
    if name.id in arguments(scope) or any(script.scope(node) is scope for node in others) or is_shared(script, name.id):
        return None
    if not runs_before(script, assign, script.statement(call)) or not is_bound_before(script, dataset, assign):
        return None
    return UnsetSampler(made[0], dataset, is_unset)


def is_shared(script: Script, name: str) -> bool:
    """Whether functions share a name: `global sampler`."""
    return any(name in node.names for node in script.nodes if isinstance(node, ast.Global | ast.Nonlocal))


def runs_before(script: Script, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements stand in one block, in this order."""
    parent = script.parents[first]
    blocks = (getattr(parent, name, ()) for name in ("body", "orelse", "finalbody"))
    return any(
        first in block and second in block and block.index(first) < block.index(second)
        for block in blocks
        if isinstance(block, list)
    )


def is_bound_before(script: Script, dataset: ast.Name, statement: ast.stmt) -> bool:
    """Whether a data set has its last value when a statement runs."""
    scope = script.scope(dataset)
    stores = (each for each in script.find(ast.Name) if each.id == dataset.id and not isinstance(each.ctx, ast.Load))
    lines = [each.lineno for each in stores if script.scope(each) is scope]
    return (bool(lines) or dataset.id in arguments(scope)) and all(line < statement.lineno for line in lines)
