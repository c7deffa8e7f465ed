"""Evaluations whose samples each rank draws for itself, or goes through in an order of its own: where all ranks go
through them as a whole, their numbers are others on each."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..drawing_samplers import order_may_be_drawn
from ..keyword_dictionaries import may_say, said
from ..script import Script
from .draws import draws_from
from .noise import is_random_transform
from .values import SAME, Class, Function, Instance, Loader, Module, Thing, Value, entries, functions_in

_TRANSFORMS = ("transform", "transforms", "target_transform")
_Callable = Instance | Module | Function | Class
_DEPTH = 5  # of objects within objects
_OF_OTHERS = ("torch.utils.data.",)  # Subset, random_split, ConcatDataset: what they are given
# What is done to a picture, and draws nothing.
_PLAIN = frozenset(
    {
        *(
            "array",
            "asarray",
            "astype",
            "convert",
            "copy",
            "crop",
            "expand",
            "float",
            "from_numpy",
            "int",
            "len",
            "long",
        ),
        *("max", "min", "permute", "resize", "round", "size", "to", "transpose", "unsqueeze"),
    }
)
_SEEDS = ("manual_seed", "seed", "default_rng", "RandomState", "Generator")
_AUGMENTS = re.compile(r"transform(?!er)|augment|(?:^|_)(?:aug|tfm)s?$", re.IGNORECASE)


@dataclass(frozen=True)
class Finder:
    """How a method is found, of a class or of one that it is derived from, and what a name at the top of a file holds:
    `flipped`, `utils.flipped`."""

    method: Callable[[Class, str, Value | None], Function | None]
    named: Callable[[ast.expr, Script], Value]
    known: dict[ast.AST, bool] = field(default_factory=dict)  # which functions that are no methods draw


def draws_apart(loader: Loader, dataset: Value | None, find: Finder) -> bool:
    """Whether ranks whose generators are not at the same place get other samples, or in another order. A data set that
    draws where a setting that is not known says so (`if train:`) is not known to.

    dataset: what the loader is made of. find: how methods and functions of the program are found.
    """
    things = dataset.things if dataset is not None else frozenset()
    drawn = bool(things) and all(_draws(each, find) for each in things)
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


def _draws(thing: Thing, find: Finder, depth: int = _DEPTH) -> bool:
    """Whether a data set draws each of its samples, or those of a data set that it is made of."""
    if isinstance(thing, Instance):
        return _method_draws(thing, "__getitem__", find, depth)
    if isinstance(thing, Module) and thing.name.startswith("torchvision.datasets."):
        changes = [each for name in _TRANSFORMS for each in thing.told.get(name, SAME).things]
        return any(_changes_at_random(each, find, depth) for each in _callable(changes))
    if not isinstance(thing, Module) or not thing.name.startswith(_OF_OTHERS) or not depth:
        return False
    return any(_draws(each, find, depth - 1) for value in entries(thing.told.values()) for each in value.things)


def _method_draws(thing: Instance, name: str, find: Finder, depth: int = _DEPTH) -> bool:
    """Whether a method of an object draws numbers each time, itself or by another one, or by another object."""
    method = find.method(thing.cls, name, None)
    return method is not None and _body_draws(method, thing, find, depth)


def _body_draws(method: Function, thing: Instance | None, find: Finder, depth: int) -> bool:
    """Whether a function draws numbers each time, itself or by another one; thing: the object that it is a method of,
    if any."""
    stored = _own_names(method)
    for node in ast.walk(method.node) if depth else ():
        draws = False
        if isinstance(node, ast.Call):
            owner, _, own = ast.unparse(node.func).rpartition(".")
            draws = bool(draws_from(method.script, node)) or _is_augmenting(method, node.func, thing, find)
            draws |= owner == "self" and thing is not None and _method_draws(thing, own, find, depth - 1)
            held = _held(node.func, thing)
            draws |= bool(held) and all(_changes_at_random(each, find, depth - 1) for each in held)
            draws |= any(_changes_at_random(each, find, depth - 1) for each in _one_of(method, node.func, thing))
            draws |= _makes_transform(method.script, node)
            value = _attribute(node.func, thing)
            functions = functions_in(value) if value is not None else []
            draws |= bool(functions) and all(_function_draws(each, find, depth - 1) for each in functions)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):  # `self.dataset[index]`
            held = _held(node.value, thing)
            draws = bool(held) and all(_draws(each, find, depth - 1) for each in held)
        elif (name := _global_name(node)) and name not in stored and _is_called(method, node):
            named = _callable_in(find.named(node, method.script))  # type: ignore[arg-type]
            draws = bool(named) and all(_changes_at_random(each, find, depth - 1) for each in named)
            draws &= not _returns_before(method, node)
        if draws and not _is_at_times(method, node, thing) and (thing is not None or not _returns_before(method, node)):
            return True
    return False


def _is_called(method: Function, node: ast.AST) -> bool:
    """Whether a name is that of what is called, or is given to a call: `flipped(x)`, `map(utils.flipped, rows)`."""
    parent = method.script.parents[node]
    body = {*ast.walk(method.node)} - {*ast.walk(method.node.args)}
    return isinstance(parent, ast.Call) and node in body


def _returns_before(method: Function, node: ast.AST) -> bool:
    """Whether a function may end before it comes to something: `if not self.training: return x`."""
    at = method.script.statement(node)
    block = method.script.block(at) if not isinstance(method.node, ast.Lambda) else []
    above = block[: block.index(at)] if at in block else []
    return any(isinstance(part, ast.Return) for each in above for part in ast.walk(each))


def _function_draws(function: Function, find: Finder, depth: int) -> bool:
    """Whether a function draws numbers each time; it may be a method of one object."""
    owners = [each for each in function.owner.only(Instance) if isinstance(each, Instance)] if function.owner else []
    if len(owners) == 1:
        return _body_draws(function, owners[0], find, depth)
    if function.node not in find.known:
        find.known[function.node] = False  # where it calls itself
        find.known[function.node] = not _seeds(function) and _body_draws(function, None, find, _DEPTH)
    return find.known[function.node]


def _seeds(function: Function) -> bool:
    """Whether a function says itself where its random numbers begin: `torch.manual_seed(index)`."""
    calls = (each.func for each in ast.walk(function.node) if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Name | ast.Attribute) and _last_name(each) in _SEEDS for each in calls)


def _own_names(method: Function) -> set[str]:
    """The names that have a value of their own in a function."""
    parts = [*ast.walk(method.node)]
    stored = {each.id for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    inner = {
        each.name for each in parts if isinstance(each, ast.FunctionDef | ast.ClassDef) and each is not method.node
    }
    imported = {each.asname or each.name.split(".")[0] for each in parts if isinstance(each, ast.alias)}
    return stored | inner | imported | {each.arg for each in parts if isinstance(each, ast.arg)}


def _global_name(node: ast.AST) -> str:
    """The name that an expression begins with: `flipped`, `utils.flipped`; "" for another expression."""
    name = node.value if isinstance(node, ast.Attribute) else node
    return name.id if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) else ""


def _callable_in(value: Value) -> list[_Callable]:
    """What may be called of what a name holds, also with some of its arguments."""
    return _callable([*functions_in(value), *value.things])


def _makes_transform(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a transform that draws, for the sample at hand, or draws by what one does:
    `RandomCrop.get_params(x, size)`."""
    name = script.qualified(call.func)
    by_parameters = name.startswith("torchvision.transforms.") and name.endswith(".get_params")
    return by_parameters or is_random_transform(name, call)


def _held(node: ast.expr, thing: Instance | None) -> list[Instance | Module]:
    """What an attribute of an object may be: `self.transform`."""
    value = _attribute(node, thing)
    return [each for each in value.things if isinstance(each, Instance | Module)] if value is not None else []


def _one_of(method: Function, node: ast.expr, thing: Instance | None) -> list[_Callable]:
    """What is in a list that an object keeps: `self.transforms[0]`, or `each` of `for each in self.transforms`."""
    value = _attribute(_taken_from(method, node), thing)
    found = entries([value])[1:] if value is not None else []
    return _callable(thing for each in found for thing in each.things)


def _taken_from(method: Function, node: ast.expr) -> ast.expr:
    """The list that something is taken from; itself where that is not seen."""
    if isinstance(node, ast.Subscript):
        return node.value
    loops = (each for each in ast.walk(method.node) if isinstance(each, ast.For | ast.comprehension))
    over = (each.iter for each in loops if ast.unparse(each.target) == ast.unparse(node))
    return next(over, node)


def _is_augmenting(method: Function, node: ast.expr, thing: Instance | None, find: Finder) -> bool:
    """Whether an object is called by an attribute that is called what augments samples is, and is not seen."""
    kept = _taken_from(method, node)
    value = _attribute(kept, thing)
    if thing is None or (kept is node and value is None and _draws_nothing(node, thing, find)):
        return False
    is_named = isinstance(kept, ast.Attribute) and bool(_AUGMENTS.search(kept.attr))
    return is_named and (value is None or (not value.is_none and not value.things))


def _draws_nothing(node: ast.expr, thing: Instance, find: Finder) -> bool:
    """Whether a method of an object is seen to do nothing that draws: `self._resize_transform(x)`."""
    if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "self":
        return False
    method = find.method(thing.cls, node.attr, None)
    if method is None or not isinstance(method.node, ast.FunctionDef) or method.node.decorator_list:
        return False
    calls = (each.func for each in ast.walk(method.node) if isinstance(each, ast.Call))
    return all(isinstance(each, ast.Name | ast.Attribute) and _last_name(each) in _PLAIN for each in calls)


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _callable(things: Iterable[Thing]) -> list[_Callable]:
    """What a data set may give its samples to."""
    return [each for each in things if isinstance(each, _Callable)]


def _changes_at_random(thing: _Callable, find: Finder, depth: int) -> bool:
    """Whether what a data set gives its samples to draws."""
    if isinstance(thing, Function):
        return _function_draws(thing, find, depth)
    if isinstance(thing, Class):  # of which an object is made for the sample at hand
        called = find.method(thing, "__call__", None)
        return called is not None and _function_draws(called, find, depth)
    if isinstance(thing, Instance):
        return _method_draws(thing, "__call__", find, depth)
    given = [each for value in entries(thing.told.values()) for each in value.things]
    composed = _callable(given) if depth else []
    return is_random_transform(thing.name, thing.made) or any(
        _changes_at_random(each, find, depth - 1) for each in composed
    )


def _is_at_times(method: Function, call: ast.AST, thing: Instance | None) -> bool:
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


def _setting(test: ast.expr, thing: Instance | None) -> bool | None:
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


def _attribute(node: ast.expr, thing: Instance | None) -> Value | None:
    """What an attribute of an object holds, `self.train`; None where that is not known."""
    is_own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    return thing.attributes.get(node.attr) if is_own and thing is not None else None  # type: ignore[attr-defined]


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
