"""Evaluations whose samples each rank draws for itself, or goes through in an order of its own: where all ranks go
through them as a whole, their numbers are others on each."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ..drawing_samplers import order_may_be_drawn
from ..keyword_dictionaries import may_say, said
from ..script import Script
from .draws import draws_from
from .noise import is_random_transform
from .values import SAME, Class, Function, Instance, Loader, Module, Thing, Value, entries

_TRANSFORMS = ("transform", "transforms", "target_transform")
_OF_OTHERS = ("torch.utils.data.",)  # Subset, random_split, ConcatDataset: what they are given
_AUGMENTS = re.compile(r"transform(?!er)|augment|(?:^|_)(?:aug|tfm)s?$", re.IGNORECASE)
MethodOf = Callable[[Class, str, Value | None], Function | None]


def draws_apart(loader: Loader, dataset: Value | None, method_of: MethodOf) -> bool:
    """Whether ranks whose generators are not at the same place get other samples, or in another order. A data set that
    draws where a setting that is not known says so (`if train:`) is not known to.

    dataset: what the loader is made of. method_of: a method of a class, or of one that it is derived from.
    """
    things = dataset.things if dataset is not None else frozenset()
    drawn = bool(things) and all(_draws(each, method_of) for each in things)
    return drawn or order_may_be_drawn(loader.script, loader.call) or _leaves_some_out(loader.script, loader.call)


def _leaves_some_out(script: Script, call: ast.Call) -> bool:
    """Whether a loader leaves out the last samples of an order that it draws."""
    words = said(script, call)
    size = call.args[1] if len(call.args) > 1 else words.get("batch_size")
    shuffle = call.args[2] if len(call.args) > 2 else words.get("shuffle")
    hidden = size is None and may_say(script, call, "batch_size")
    one = not hidden and (size is None or (isinstance(size, ast.Constant) and size.value == 1))
    return not one and not _is_off(shuffle) and not _is_off(words.get("drop_last"))


def _is_off(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def _draws(thing: Thing, method_of: MethodOf, depth: int = 5) -> bool:
    """Whether a data set draws each of its samples, or those of a data set that it is made of."""
    if isinstance(thing, Instance):
        return _method_draws(thing, "__getitem__", method_of, depth)
    if isinstance(thing, Module) and thing.name.startswith("torchvision.datasets."):
        changes = [each for name in _TRANSFORMS for each in thing.told.get(name, SAME).things]
        return any(
            _changes_at_random(each, method_of, depth) for each in changes if isinstance(each, Instance | Module)
        )
    if not isinstance(thing, Module) or not thing.name.startswith(_OF_OTHERS) or not depth:
        return False
    return any(_draws(each, method_of, depth - 1) for value in entries(thing.told.values()) for each in value.things)


def _method_draws(thing: Instance, name: str, method_of: MethodOf, depth: int = 5) -> bool:
    """Whether a method of an object draws numbers each time, itself or by another one, or by another object."""
    method = method_of(thing.cls, name, None)
    if method is None or not depth:
        return False
    for node in ast.walk(method.node):
        draws = False
        if isinstance(node, ast.Call):
            owner, _, own = ast.unparse(node.func).rpartition(".")
            draws = bool(draws_from(method.script, node)) or _is_augmenting(method, node.func, thing)
            draws |= owner == "self" and _method_draws(thing, own, method_of, depth - 1)
            held = _held(node.func, thing)
            draws |= bool(held) and all(_changes_at_random(each, method_of, depth - 1) for each in held)
            draws |= any(_changes_at_random(each, method_of, depth - 1) for each in _one_of(method, node.func, thing))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):  # `self.dataset[index]`
            held = _held(node.value, thing)
            draws = bool(held) and all(_draws(each, method_of, depth - 1) for each in held)
        if draws and not _is_at_times(method, node, thing):
            return True
    return False


def _held(node: ast.expr, thing: Instance) -> list[Instance | Module]:
    """What an attribute of an object may be: `self.transform`."""
    value = _attribute(node, thing)
    return [each for each in value.things if isinstance(each, Instance | Module)] if value is not None else []


def _one_of(method: Function, node: ast.expr, thing: Instance) -> list[Instance | Module]:
    """What is in a list that an object keeps: `self.transforms[0]`, or `each` of `for each in self.transforms`."""
    value = _attribute(_taken_from(method, node), thing)
    found = entries([value])[1:] if value is not None else []
    return [thing for each in found for thing in each.things if isinstance(thing, Instance | Module)]


def _taken_from(method: Function, node: ast.expr) -> ast.expr:
    """The list that something is taken from; itself where that is not seen."""
    if isinstance(node, ast.Subscript):
        return node.value
    loops = (each for each in ast.walk(method.node) if isinstance(each, ast.For | ast.comprehension))
    over = (each.iter for each in loops if ast.unparse(each.target) == ast.unparse(node))
    return next(over, node)


def _is_augmenting(method: Function, node: ast.expr, thing: Instance) -> bool:
    """Whether an object is called by an attribute that is called what augments samples is, and is not seen."""
    kept = _taken_from(method, node)
    value = _attribute(kept, thing)
    is_named = isinstance(kept, ast.Attribute) and bool(_AUGMENTS.search(kept.attr))
    return is_named and (value is None or (not value.is_none and not value.things))


def _changes_at_random(thing: Instance | Module, method_of: MethodOf, depth: int) -> bool:
    """Whether what a data set gives its samples to draws."""
    if isinstance(thing, Instance):
        return _method_draws(thing, "__call__", method_of, depth)
    given = [each for value in entries(thing.told.values()) for each in value.things]
    composed = [each for each in given if isinstance(each, Instance | Module)] if depth else []
    return is_random_transform(thing.name, thing.made) or any(
        _changes_at_random(each, method_of, depth - 1) for each in composed
    )


def _is_at_times(method: Function, call: ast.AST, thing: Instance) -> bool:
    """Whether a method makes a call at times only, by a setting: not by its samples, `if len(x) > self.length:`."""
    child = call
    for each in method.script.ancestors(call):
        if each is method.node:
            return False
        if isinstance(each, ast.If | ast.IfExp) and not _is_there(each.test, call):
            decided = _setting(each.test, thing)
            taken = child is each.body or (isinstance(each.body, list) and child in each.body)
            if decided is None and not _is_of_samples(method, each.test):
                return True
            if decided is not None and child is not each.test and decided is not taken:
                return True
        elif isinstance(each, ast.BoolOp | ast.While | ast.Try):
            return True
        child = each
    return False


def _is_there(test: ast.expr, call: ast.AST) -> bool:
    """Whether a test asks whether what is called is there: `if self.transform is not None: x = self.transform(x)`."""
    kept = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    return ast.unparse(test) in (kept, f"{kept} is not None", f"{kept} != None") and kept.startswith("self.")


def _setting(test: ast.expr, thing: Instance) -> bool | None:
    """What a test of an attribute of an object says; None where that is not known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _setting(test.operand, thing)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        value, other = _attribute(test.left, thing), test.comparators[0].value
        if other is None and value is not None and value.is_none is not None:
            return value.is_none is isinstance(test.ops[0], ast.Is | ast.Eq)
        if value is not None and value.constant is not None and isinstance(test.ops[0], ast.Eq | ast.NotEq):
            return (value.constant == other) is isinstance(test.ops[0], ast.Eq)
        return None
    value = _attribute(test, thing)
    if value is None or value.is_none is None or (not value.is_none and value.constant is None and not value.things):
        return None
    return not value.is_none and (bool(value.things) or bool(value.constant))


def _attribute(node: ast.expr, thing: Instance) -> Value | None:
    """What an attribute of an object holds, `self.train`; None where that is not known."""
    is_own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    return thing.attributes.get(node.attr) if is_own else None  # type: ignore[attr-defined]


def _is_of_samples(method: Function, test: ast.expr) -> bool:
    """Whether a test is one of a sample, or is drawn: it has names of what the method computes, and no setting."""
    nodes = [*ast.walk(test)]
    computed = {
        node.id for node in ast.walk(method.node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    is_setting = any(isinstance(node, ast.BoolOp) for node in nodes)
    names = any(isinstance(node, ast.Name) and node.id in computed for node in nodes)
    drawn = any(isinstance(node, ast.Call) and draws_from(method.script, node) for node in nodes)
    return (names or drawn) and not is_setting
