"""Entries of dicts that stay what they were when a loader was made by them: `config["batch_size"]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..script import KEPT, Script
from .scopes import FUNCTIONS, parameters_of

_CHANGE = frozenset({"update", "pop", "popitem", "setdefault", "clear", "__setitem__", "__delitem__", "__ior__"})
_COPIES = frozenset({"vars", "dict", "copy", "deepcopy", "OrderedDict"})
_LOADS = frozenset({"dict", "json.load", "json.loads", "yaml.load", "yaml.safe_load", "toml.load", "tomllib.load"})


def key_of(node: ast.AST) -> str:
    """The key of an entry of a dict; "" for others."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return ""


def is_settled(scripts: Sequence[Script], script: Script, size: ast.Subscript, binder: ast.AST | None) -> bool:
    """Whether nothing in a program changes an entry once a loader may have been made by it.

    Args: the program; a file of it, and the entry there. binder: the function or file that the name of the dict is
    known in, if all that asks for the entry is one call of that; None where it goes by other names, too.
    """
    keys = {key_of(each) for each in ast.walk(size)} - {""}
    names = _other_names(tuple(scripts), name_of(size))
    if binder is not script.tree and binder in script.generators:  # what calls it goes on in between
        return False
    held = {each.attr for each in ast.walk(size) if isinstance(each, ast.Attribute)}
    changes = [(other, each) for other in scripts for each in _changes(other, names, keys)]
    changes += [(other, each) for other in scripts for each in _given_anew(other, held, binder)]
    return all(_is_before(script, size, other, each, binder) for other, each in changes)


def name_of(node: ast.AST) -> str:
    """The last name of a dict, or of one that it is an entry or a copy of: `config` of `self.config["train"]`,
    `vars(config)`, `config.copy()`, `dict(config, lr=1)`."""
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == ("copy" if not node.args else "get"):
            return name_of(function.value)
        return name_of(node.args[0]) if node.args and name_of(function) in _COPIES else ""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@lru_cache(maxsize=KEPT)
def _other_names(scripts: tuple[Script, ...], name: str) -> frozenset[str]:
    """The names that a dict may go by: what it is assigned to, or is given to as an argument, or comes from."""
    pairs = [pair for script in scripts for pair in _same(script, scripts)]
    found = {name}
    while new := {one for pair in pairs if found & {*pair} for one in pair} - found:
        found |= new
    return frozenset(found)


def _same(script: Script, scripts: Sequence[Script]) -> Iterator[tuple[str, str]]:
    """The names in a file that may be those of one thing."""
    for node in script.find(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        value = node.iter if isinstance(node, ast.For) else node.value  # type: ignore[attr-defined]
        values = [name_of(each) for each in getattr(value, "elts", [value]) if each is not None]
        found = [name_of(each) for target in targets for each in getattr(target, "elts", [target])]
        yield from ((one, other) for one in found for other in values if one and other)
    functions: dict[str, list[ast.FunctionDef]] = {}
    for each in (each for other in scripts for each in other.find(ast.FunctionDef)):
        cls = next((other.parents[each] for other in scripts if each in other.parents), None)
        own = getattr(cls, "name", "") if each.name == "__init__" else each.name
        functions.setdefault(own, []).append(each)
    for call in script.find(ast.Call):
        for function in functions.get(name_of(call.func), ()):
            words = [(word.arg or "", name_of(word.value)) for word in call.keywords]
            given = [name_of(each) for each in call.args]
            parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            yield from ((one, other) for one, other in words if one and other)
            skipped = parameters[1:] if parameters[:1] in (["self"], ["cls"]) else parameters
            yield from ((one, other) for one, other in zip(skipped, given, strict=False) if other)


def _changes(script: Script, names: frozenset[str], keys: set[str]) -> Iterator[ast.expr]:
    """What in a file may change an entry under one of some keys, of a dict that goes by some names."""
    for node in script.find(ast.Subscript, ast.Attribute):
        if isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Attribute):
            if node.attr in keys:
                yield node
        elif key_of(node) in keys or (not isinstance(node.slice, ast.Constant) and name_of(node) in names):
            yield node
    for call in script.find(ast.Call):
        function = call.func
        if call.args and name_of(function) == "dict" and {word.arg for word in call.keywords} & {None, *keys}:
            yield call
        sets = isinstance(function, ast.Name) and function.id in ("setattr", "delattr") and call.args
        if sets and name_of(call.args[0]) in names and (_says(call.args[1:2]) is None or _says(call.args[1:2]) in keys):
            yield call
        elif isinstance(function, ast.Attribute) and function.attr in _CHANGE and name_of(function.value) in names:
            told = {word.arg for word in call.keywords}
            plain = function.attr in ("pop", "setdefault") or (function.attr == "update" and not call.args)
            said = {_says(call.args[:1])} if function.attr in ("pop", "setdefault") else told
            if not plain or None in said or said & keys:
                yield call
    for each in script.find(ast.AugAssign):
        if not isinstance(each.target, ast.Subscript) and name_of(each.target) in names:
            yield each.target


def _given_anew(script: Script, held: set[str], binder: ast.AST | None) -> Iterator[ast.Attribute]:
    """Where a file gives an object another dict, under one of some attributes, but where the object is made."""
    for node in script.find(ast.Attribute):
        if node.attr in held and not isinstance(node.ctx, ast.Load):
            place = _place(script, node)
            if getattr(place, "name", "") != "__init__" or place is binder:
                yield node


def _says(nodes: Sequence[ast.expr]) -> str | None:
    """A text that is written out; None for others."""
    node = nodes[0] if nodes else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_before(script: Script, size: ast.expr, other: Script, change: ast.expr, binder: ast.AST | None) -> bool:
    """Whether a change is made before a loader is made by an entry, or is one of another dict."""
    place = _place(other, change)
    if binder is None:
        return other is not script and place is other.tree
    if place is binder:
        return other is script and _comes_first(script, change, size, binder)
    return place is other.tree or _is_new(other, change, place)


def _comes_first(script: Script, one: ast.AST, other: ast.AST, binder: ast.AST) -> bool:
    """Whether one thing stands in a statement before that of another, in the same function, and both in no loop."""
    for first, then in zip(_down_to(script, one, binder), _down_to(script, other, binder), strict=False):
        block = script.block(first)
        if first is not then:
            return then in block and block.index(first) < block.index(then)
        if not isinstance(first, ast.If | ast.With | ast.Try):
            break
    return False


def _down_to(script: Script, node: ast.AST, binder: ast.AST) -> list[ast.stmt]:
    """The statements that a node stands in, the outermost first, as far as a function or a file goes."""
    found = []
    for each in script.ancestors(node):
        if each is binder:
            break
        found += [each] if isinstance(each, ast.stmt) else []
    return found[::-1]


def _place(script: Script, node: ast.AST) -> ast.AST:
    """The function that something stands in, or the file."""
    return next((each for each in script.ancestors(node) if isinstance(each, (*FUNCTIONS, ast.Lambda))), script.tree)


def _is_new(script: Script, change: ast.expr, place: ast.AST) -> bool:
    """Whether a function changes a dict that it has made itself: `config = {}; config[key] = value`."""
    owner = change.func.value if isinstance(change, ast.Call) and isinstance(change.func, ast.Attribute) else change
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    if not isinstance(owner, ast.Name) or not isinstance(place, FUNCTIONS) or owner.id in parameters_of(place):
        return False
    made = [script.statement(each) for each in script.stores.get((place, owner.id), ())]
    return bool(made) and all(isinstance(each, ast.Assign) and _makes(script, each.value) for each in made)


def _makes(script: Script, node: ast.expr) -> bool:
    """Whether an expression makes a dict."""
    makes = isinstance(node, ast.Call) and script.qualified(node.func) in _LOADS
    return makes or isinstance(node, ast.Dict | ast.DictComp)
