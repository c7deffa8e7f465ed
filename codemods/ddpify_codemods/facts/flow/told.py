"""Meters that keep the last numbers they got: `self.values = deque(maxlen=20)`.

What they make of them, a median of the last steps, is none of the numbers that ranks could bring together later. They
are given those of all ranks: `logger.update(loss=mean_over_ranks(loss.item()))`.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

from ..bindings import arguments
from ..script import KEPT, Script
from .frames import FlowFacts, Frame
from .held_values import additive, local_entries, settled
from .reading import Reading
from .values import Class, Function, Instance, Items, Value, entries, of


class Told(Reading):
    """What meters are told."""

    def numbers_of_all(
        self, node: ast.Call, function: Value, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> tuple[list[Value], dict[str, Value]]:
        """What a call gives to a meter that keeps the last numbers it got: numbers of all ranks."""
        owners = [thing.owner for thing in function.things if isinstance(thing, Function) and thing.owner is not None]
        if self.in_forward or len(owners) < len(function.things) or len(args) != len(node.args):
            return args, keywords
        if all(map(_keeps_last, owners)):
            self.found.told.add(node)
        if node not in self.told:
            return args, keywords
        words = [word.arg or "**" for word in node.keywords]
        nodes = [*node.args, *(word.value for word in node.keywords)]
        values = [*args, *(keywords[each] for each in words)]
        learns = any(map(_goes_back, owners))
        for place, value in enumerate(values):
            if not (value.is_local or local_entries(value)):
                self.found.read_same.add(nodes[place])
            elif additive(value) is not None and not (learns and any(each.forwards for each in entries([value]))):
                self.demand(nodes[place], value, frame)
                values[place] = replace(settled(value), constant=None)
        return values[: len(args)], dict(zip(words, values[len(args) :], strict=True))

    def made_by_default(self, value: Value, node: ast.Call, frame: Frame) -> Value | None:
        """The object of the program, or the dict, that a defaultdict makes for a key that it does not have."""
        made = [
            self.called(each, node, [], {}, frame, False) for each in value.things if isinstance(each, Class | Function)
        ]
        if len(made) != 1 or len(value.things) != 1:
            return None
        things = [replace(thing, of_several=True) for thing in made[0].only(Items) if _is_dict(thing)]
        return made[0] if made[0].only(Instance) else of(things[0]) if len(things) == 1 else None


def _is_dict(thing: object) -> TypeGuard[Items]:
    return isinstance(thing, Items) and thing.shape == "dict"


def of_means_and_sums(found: FlowFacts) -> set[ast.Call]:
    """The calls that give a meter a mean in one place and a sum in another, `self.sum += value`, which are brought
    together otherwise, or one of them and a number that all ranks have: it cannot do that where it reads them."""
    calls: set[ast.Call] = set()
    for node, reductions in found.reductions.items():
        script = next(iter(reductions)).script
        several = len({each.kind == "mean" for each in reductions}) > 1 or _is_told_whole(script, node, found)
        if not several and not is_also_whole(found, node):
            continue
        around = next((each for each in script.ancestors(node) if isinstance(each, ast.FunctionDef)), None)
        if around is not None and isinstance(script.parents[around], ast.ClassDef):
            calls |= {call for call, _ in found.called_with.get(around, ())}
    return calls


def _is_told_whole(script: Script, node: ast.expr, found: FlowFacts) -> bool:
    """Whether what a method is given, of which a sum over ranks is asked for, is the same on all of them in another
    call: `n` of `meter.update(loss.item(), len(x))`, and of `meter.update(time.time() - start)`, where it is 1. A ratio
    is what it was."""
    if not isinstance(node, ast.Name) or node not in found.read_same:
        return False
    if any(each.kind == "mean" for each in found.reductions[node]):
        return False
    around = script.scope(node)
    inside = (each for each in script.ancestors(node) if isinstance(each, ast.BinOp))
    return node.id in arguments(around) and not any(isinstance(each.op, ast.Div | ast.FloorDiv) for each in inside)


def is_also_whole(found: FlowFacts, node: ast.expr) -> bool:
    """Whether a sum over ranks is asked for of something that all ranks have in another case, beside one that is not so
    many times larger, too: both sides of `self.sum / self.count`."""

    def grows(part: ast.expr | None) -> bool:
        reductions = found.reductions.get(part) if part is not None else None
        return bool(reductions) and all(each.kind != "mean" for each in reductions or ())

    kept = isinstance(node, ast.Name | ast.Attribute)  # not `len(x)`, of whatever batch it is
    return kept and node in found.met_same and grows(node) and not all(map(grows, found.met_same[node]))


def _goes_back(value: Value) -> bool:
    """Whether a method of an object makes a backward pass."""
    classes = [thing.cls.node for thing in value.only(Instance) if isinstance(thing, Instance)]
    return any(
        isinstance(part, ast.Attribute) and part.attr == "backward" for each in classes for part in ast.walk(each)
    )


def _keeps_last(value: Value, depth: int = 4) -> bool:
    """Whether an object keeps the last of the numbers that it gets, or others that it holds do."""
    for thing in value.things if depth else ():
        if isinstance(thing, Items) and any(_keeps_last(each, depth - 1) for each in thing.all()):
            return True
        if isinstance(thing, Instance):
            held = thing.attributes.values()
            if has_window(thing.cls.script, thing.cls.node) or any(_keeps_last(each, depth - 1) for each in held):
                return True
    return False


@lru_cache(maxsize=KEPT)
def has_window(script: Script, cls: ast.ClassDef) -> bool:
    """Whether objects of a class keep a deque that forgets what is no longer among the last."""
    made = (each.value for each in ast.walk(cls) if isinstance(each, ast.Assign | ast.AnnAssign))
    calls = (each for each in made if isinstance(each, ast.Call))
    return any(
        script.qualified(each.func) == "collections.deque" and (each.args[1:] or "maxlen" in words_of(each))
        for each in calls
    )


def words_of(call: ast.Call) -> set[str | None]:
    """The names of what a call gives by keyword."""
    return {word.arg for word in call.keywords}
