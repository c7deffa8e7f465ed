"""The tensors in a value, and the value with others in their place: of what pytree knows, and of objects of any class.

Models take and return dataclasses, dictionaries with attributes, caches of keys and values. An object that holds
tensors is copied (copy.copy), and the copy gets the others; one that holds none stays itself.
"""

from __future__ import annotations

import copy
import operator
import types
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..torch_geometric_internals import NODES_OF_EACH
from ..torch_internals import TreeSpec, tree_flatten, tree_unflatten

PLAIN = (bool, int, float, complex, str, bytes, type(None), Enum, torch.dtype, torch.device, torch.layout, torch.Size)
_CLOSED = (
    *(
        *PLAIN,
        Tensor,
        nn.Module,
        torch.Generator,
        type,
        types.ModuleType,
        types.FunctionType,
        types.BuiltinFunctionType,
    ),
    *(types.MethodType, tuple, set, frozenset, deque, bytearray),
)
_WITHOUT_PARTS = (Tensor, *PLAIN)
# What is said of each sample beside what is said of all.
_NOT_ENTERED = {NODES_OF_EACH}


@dataclass(frozen=True)
class Held:
    """An object among the leaves of a tree: the names of its parts, and their form. like: what to copy."""

    kind: type
    names: tuple[Any, ...]
    form: Form
    like: Any = field(compare=False, repr=False)


@dataclass(frozen=True)
class Form:
    """What a value consists of beside its leaves.

    objects: those among the leaves of the tree, by their place; one that this is a part of: how far above.
    """

    tree: TreeSpec
    objects: tuple[tuple[int, Held | int], ...]

    @cached_property
    def text(self) -> str:
        """What stands for the form among the keys of a dictionary."""
        return str(self)


@dataclass(frozen=True)
class CallForm(Form):
    """Of plain arguments and keywords, which need no walk."""

    positional: int = field(compare=False)
    names: tuple[str, ...] = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.tree, self.objects) == (other.tree, other.objects)


def flatten(value: Any) -> tuple[list[Any], Form]:
    """The leaves of a value, and its form. Tensors are leaves, and so is what holds none; a list of words is one."""
    if isinstance(value, Tensor):
        return [value], _of_one()
    leaves: list[Any] = []
    return leaves, _flattened(value, leaves, ())


def flatten_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
    """As `flatten((args, kwargs))`."""
    leaves = [*args, *kwargs.values()]
    if len(leaves) == 1 and isinstance(leaves[0], Tensor):
        return leaves, _of_call(len(args), tuple(kwargs))
    if all(isinstance(leaf, _WITHOUT_PARTS) for leaf in leaves):
        return leaves, _of_call(len(args), tuple(kwargs))
    return flatten((args, kwargs))


def unflatten(leaves: Iterable[Any], form: Form) -> Any:
    """A value of this form with these leaves."""
    if form is _of_one():
        (leaf,) = leaves
        return leaf
    if isinstance(form, CallForm):
        given = tuple(leaves)
        return given[: form.positional], dict(zip(form.names, given[form.positional :], strict=True))
    return _made(iter(leaves), form, ())


Copies = list[tuple[Any, Any, Any]]


def copies(given: Any, made: Any) -> Copies:
    """The lists, dictionaries and attributes of a value beside those that `unflatten` made in their place, and what is
    in these."""
    found: Copies = []
    seen: set[int] = set()
    pairs = [(given, made)]
    while pairs:
        one, other = pairs.pop()
        if one is other or id(one) in seen or isinstance(one, _WITHOUT_PARTS):
            continue
        seen.add(id(one))
        if issubclass(type(one), (tuple, list)):  # past what only says that it is one
            if not issubclass(type(one), tuple):
                found.append((one, other, [*other]))
            pairs += zip(one, other, strict=False)
            continue
        if not issubclass(type(one), dict):
            one, other = getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
        found.append((one, other, {**other}))
        pairs += [(value, other[key]) for key, value in one.items() if key in other]  # in an order of all ranks
    return found


def give_back(pairs: Copies) -> None:
    """Change lists, dictionaries and attributes as a call has changed the copies that it got of them."""
    for given, made, before in pairs:
        if isinstance(given, list):
            if len(made) != len(before) or any(map(operator.is_not, made, before)):
                same = map(operator.is_, made, before)
                given[:] = [
                    *(old if kept else new for old, new, kept in zip(given, made, same, strict=False)),
                    *made[len(before) :],
                ]
            continue
        for key in before.keys() - made.keys():
            del given[key]
        given |= {key: value for key, value in made.items() if value is not before.get(key, given)}


@cache
def _of_one() -> Form:
    return _flattened(None, [], ())


@cache
def _of_call(positional: int, names: tuple[str, ...]) -> CallForm:
    form = _flattened(((None,) * positional, dict.fromkeys(names)), [], ())
    return CallForm(form.tree, form.objects, positional, names)


def copied(leaf: Any) -> Any:
    """A copy of a leaf that a forward could change, down to what it holds: a cache of keys fills lists of its own."""
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    if type(leaf) is list:
        return [*leaf]
    if not _parts(leaf):
        return leaf
    try:
        return copy.deepcopy(leaf)
    except Exception:  # noqa: BLE001  whatever it holds
        return copy.copy(leaf)


def equal(one: Any, other: Any, depth: int = 6) -> bool:
    """Whether two leaves that are no tensors are known to be alike."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, Tensor) or not depth:
        return False
    if isinstance(one, (*PLAIN, set, frozenset)):
        return bool(one == other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(equal(a, b, depth - 1) for a, b in zip(one, other, strict=True))
    if type(one).__module__ == "numpy" and hasattr(one, "shape"):
        return one.shape == other.shape and bool((one == other).all())
    if isinstance(one, dict) and not one and not other:
        return True
    parts, others = _parts(one), _parts(other)
    if not parts or not others or parts.keys() != others.keys():  # without any, what it holds is not to be seen
        return False
    return all(equal(value, others[name], depth - 1) for name, value in parts.items())


def _flattened(value: Any, leaves: list[Any], above: tuple[Any, ...]) -> Form:
    found, tree = tree_flatten(value, is_leaf=_is_leaf)
    objects: list[tuple[int, Held | int]] = []
    for place, leaf in enumerate(found):
        far = next((far for far, each in enumerate(above) if each is leaf), None)
        if far is not None:
            objects.append((place, far))
            continue
        parts = _parts(leaf)
        held: list[Any] = []
        form = _flattened(list(parts.values()), held, (leaf, *above)) if parts else None
        if parts and form and any(isinstance(each, Tensor) for each in held):
            objects.append((place, Held(type(leaf), tuple(parts), form, leaf)))
            leaves += held
        else:
            leaves.append(leaf)
    return Form(tree, tuple(objects))


def _is_leaf(value: Any) -> bool:
    if type(value) is list:  # one for each sample, as a rule, and others in each batch
        return bool(value) and all(type(each) is str for each in value)
    return isinstance(value, torch.Size)  # of which tree_map would make a tuple


def _made(leaves: Iterator[Any], form: Form, above: tuple[Any, ...]) -> Any:
    objects = dict(form.objects)
    found = []
    for place in range(form.tree.num_leaves):
        held = objects.get(place)
        if held is None:
            found.append(next(leaves))
        else:
            found.append(above[held] if isinstance(held, int) else _object(held, leaves, above))
    return tree_unflatten(found, form.tree)


def _object(held: Held, leaves: Iterator[Any], above: tuple[Any, ...]) -> Any:
    made = copy.copy(held.like)
    for (kind, name), value in zip(held.names, _made(leaves, held.form, (made, *above)), strict=True):
        if kind == "item":
            (dict if isinstance(made, dict) else list).__setitem__(made, name, value)
        elif name in getattr(made, "__dict__", {}):  # past a __setattr__ of its own
            vars(made)[name] = value
        else:
            object.__setattr__(made, name, value)
    return made


def _parts(value: Any) -> dict[Any, Any] | None:
    """The items and attributes of an object that can be copied with others; None for what is taken as it is."""
    if type(value) is list or isinstance(value, _CLOSED) or hasattr(type(value), "__next__"):
        return None
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, (dict, list)):
        if not issubclass(type(value), (dict, list)):  # it only says so, as what stands for the list of all ranks
            return None
        items = dict.items(value) if isinstance(value, dict) else enumerate(list.__iter__(value))
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    of = type(value).__module__
    named = {("attribute", key): each for key, each in attributes.items() if (of, key) not in _NOT_ENTERED}
    return {("item", key): each for key, each in items} | named


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
