"""Loops over what is written down: phases, and the loaders that belong to them. Each turn is followed by itself."""

from __future__ import annotations

import ast

from ..bindings import arguments, bindings
from ..script import Script
from .values import Items, Iteration, Loader, Value, of

_MOST = 4


def written_down(script: Script, over: ast.expr) -> list[ast.expr]:
    """The parts of a list or tuple that a loop runs over: written there, or by a name that stands for constants alone
    and is only read; none for anything else."""
    listed = over
    if isinstance(over, ast.Name):
        scope = script.scope(over)
        made = bindings(script, scope).get(over.id) or bindings(script, script.tree).get(over.id, [])
        named = [each for each in script.find(ast.Name) if each.id == over.id]
        stores = [each for each in named if not isinstance(each.ctx, ast.Load)]
        if len(made) != 1 or len(stores) != 1 or over.id in arguments(scope):
            return []
        if not all(_is_only_read(script, each) for each in named if each not in stores):
            return []
        listed = made[0]
    if not isinstance(listed, ast.List | ast.Tuple) or any(isinstance(each, ast.Starred) for each in listed.elts):
        return []
    constants = all(isinstance(each, ast.Constant) for each in listed.elts)
    return listed.elts if constants or listed is over else []


def _is_only_read(script: Script, name: ast.Name) -> bool:
    """Whether a list stays as it is where its name is used: not in `phases.append("test")`, nor in `more = phases`."""
    parent = script.parents[name]
    if isinstance(parent, ast.Call):
        return name in parent.args and ast.unparse(parent.func) in ("len", "enumerate", "print", "zip", "list")
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    return isinstance(parent, ast.For | ast.comprehension | ast.Compare | ast.FormattedValue)


def phases(over: Value) -> list[Value] | None:
    """What the turns of a loop over phases take: `["train", "val"]` by its name, `loaders.items()`, pairs of a phase
    and a loader, `zip(phases, loaders)`; None for anything else."""
    turns = _turns(over)
    if not turns or len(turns) > _MOST:
        return None
    named = all(isinstance(each.constant, str | bool) for each in turns)
    return turns if named or all(map(has_loader, turns)) else None


def _turns(over: Value) -> list[Value] | None:
    if over.is_local or len(over.things) != 1:
        return None
    (thing,) = over.things
    if isinstance(thing, Items):
        known = None if thing.rest is not None or thing.grows or thing.default is not None else thing.known
        if known is None or thing.shape != "dict":
            return None if known is None else list(known.values())
        return [Value(constant=key, host=True) for key in known]
    if not isinstance(thing, Iteration) or len(thing.inner) < 1:
        return None
    if thing.how == "zip":
        columns = [_turns(each) for each in thing.inner]
        listed = [each for each in columns if each is not None]
        return [_together(*each) for each in zip(*listed, strict=False)] if len(listed) == len(columns) else None
    inner = [each for each in thing.inner[0].things if isinstance(each, Items) and each.shape == "dict"]
    keys = _turns(thing.inner[0]) if inner and len(thing.inner) == 1 else None
    if keys is None or thing.how == "keys":
        return keys
    values = list(inner[0].known.values())
    if thing.how == "pairs":
        return [_together(key, value) for key, value in zip(keys, values, strict=True)]
    return values if thing.how == "entries" else None


def entry_by_entry(over: Value) -> dict[str | int, Value] | None:
    """The entries of the dict that a loop runs over, `batch.items()`, where all of them are known; None for others."""
    thing = next(iter(over.things)) if len(over.things) == 1 and not over.is_local else None
    if not isinstance(thing, Iteration) or thing.how != "pairs" or len(thing.inner) != 1 or thing.part:
        return None
    dicts = list(thing.inner[0].things)
    items = dicts[0] if len(dicts) == 1 and not thing.inner[0].is_local else None
    if not isinstance(items, Items) or items.shape != "dict" or items.rest is not None or items.default is not None:
        return None
    plain = not (items.grows or items.by_sample or items.may_be_by_sample or items.lengthened or items.apart)
    keyed = {key: value for key, value in items.known.items() if isinstance(key, str | int)}
    return keyed if plain and len(keyed) == len(items.known) else None


def holds_of_key(test: ast.expr, name: str, key: str | int) -> bool | None:
    """Whether a condition holds of a key, `key != "labels"`, `key in ("mask", "labels")`; None where it asks more."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or ast.unparse(test.left) != name:
        return None
    operator = test.ops[0]
    try:
        other = ast.literal_eval(test.comparators[0])
    except ValueError:
        return None
    if isinstance(operator, ast.Eq | ast.NotEq):
        return (key == other) is isinstance(operator, ast.Eq)
    if not isinstance(operator, ast.In | ast.NotIn) or not isinstance(other, list | tuple | set):
        return None
    return (key in other) is isinstance(operator, ast.In)


def _together(*values: Value) -> Value:
    return of(Items("tuple", dict(enumerate(values))))


def has_loader(turn: Value) -> bool:
    """Whether a turn takes a loader alone, or in a tuple."""
    tuples = [thing for thing in turn.things if isinstance(thing, Items) and thing.shape == "tuple"]
    entries = [turn, *(entry for each in tuples for entry in each.all())]
    return any(isinstance(thing, Loader) for entry in entries for thing in entry.things)
