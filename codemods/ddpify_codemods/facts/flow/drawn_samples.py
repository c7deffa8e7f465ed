"""Evaluations whose samples each rank draws for itself, or goes through in an order of its own: where all ranks go
through them as a whole, their numbers are others on each."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..drawing_samplers import order_may_be_drawn
from .draws import draws_from
from .values import SAME, Class, Function, Instance, Loader, Module, Thing, Value, entries

_AT_TIMES = ast.If | ast.IfExp | ast.BoolOp | ast.While | ast.Try
_OF_OTHERS = ("torch.utils.data.",)  # Subset, random_split, ConcatDataset: what they are given
MethodOf = Callable[[Class, str, Value | None], Function | None]


def draws_apart(loader: Loader, dataset: Value | None, method_of: MethodOf) -> bool:
    """Whether ranks whose generators are not at the same place get other samples, or in another order. A data set that
    draws at times (`if self.train:`), or by what a library makes (`self.transform(image)`), is not known to.

    dataset: what the loader is made of. method_of: a method of a class, or of one that it is derived from.
    """
    things = dataset.things if dataset is not None else frozenset()
    drawn = bool(things) and all(_draws(each, method_of) for each in things)
    return drawn or order_may_be_drawn(loader.script, loader.call) or _leaves_some_out(loader.call)


def _leaves_some_out(call: ast.Call) -> bool:
    """Whether a loader leaves out the last samples of an order that it draws."""
    words = {word.arg: word.value for word in call.keywords}
    size = call.args[1] if len(call.args) > 1 else words.get("batch_size")
    shuffle = call.args[2] if len(call.args) > 2 else words.get("shuffle")
    one = None not in words and (size is None or (isinstance(size, ast.Constant) and size.value == 1))
    return not one and not _is_off(shuffle) and not _is_off(words.get("drop_last"))


def _is_off(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def _draws(thing: Thing, method_of: MethodOf, depth: int = 4) -> bool:
    """Whether a data set draws each of its samples, or those of a data set that it is made of."""
    if isinstance(thing, Instance):
        return _method_draws(thing, "__getitem__", method_of)
    if not isinstance(thing, Module) or not thing.name.startswith(_OF_OTHERS) or not depth:
        return False
    return any(_draws(each, method_of, depth - 1) for value in entries(thing.told.values()) for each in value.things)


def _method_draws(thing: Instance, name: str, method_of: MethodOf, depth: int = 3) -> bool:
    """Whether a method of an object draws numbers each time, itself or by another one, or by another object."""
    method = method_of(thing.cls, name, None)
    if method is None or not depth:
        return False
    for call in (node for node in ast.walk(method.node) if isinstance(node, ast.Call)):
        owner, _, own = ast.unparse(call.func).rpartition(".")
        draws = bool(draws_from(method.script, call))
        if owner == "self":
            held = [each for each in thing.attributes.get(own, SAME).things if isinstance(each, Instance)]
            draws |= _method_draws(thing, own, method_of, depth - 1)
            draws |= bool(held) and all(_method_draws(each, "__call__", method_of, depth - 1) for each in held)
        if draws and not _is_at_times(method, call):
            return True
    return False


def _is_at_times(method: Function, call: ast.AST) -> bool:
    """Whether a method makes a call at times only."""
    for each in method.script.ancestors(call):
        if each is method.node:
            return False
        if isinstance(each, _AT_TIMES):
            return True
    return False
