"""Models that an object is given in its `__init__` alone, by other words than its own: `model = self.model` in one of
its methods, `trainer.model` elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from ..called_modules import last_name
from ..script import Script
from .grown_models import may_grow
from .program import Program
from .scopes import FUNCTIONS, binder_of, bound_otherwise, class_around, parameters_of


def held_attribute(program: Program, script: Script, node: ast.expr) -> ast.Attribute | None:
    """The attribute of its own object that a variable of a method is given, and nothing else: `model = self.model`,
    `model = self.model.train()`."""
    method = script.scope(node)
    if not isinstance(node, ast.Name) or not isinstance(method, FUNCTIONS) or binder_of(script, node) is not method:
        return None
    held = _without_mode(program, script, _only_value(script, node, method))
    if not isinstance(held, ast.Attribute) or ast.unparse(held) != f"self.{held.attr}" or method.name == "__init__":
        return None
    cls = class_around(script, held)
    return held if _is_given_first(program, held.attr, cls) and not _may_grow(program, held.attr, cls) else None


def _without_mode(program: Program, script: Script, value: ast.expr | None) -> ast.expr | None:
    """What `….train()` and `….eval()` of torch give back, which is what they set."""
    called = value.func if isinstance(value, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in ("train", "eval"):
        return value
    own = any((value, script) in calls for calls in program.followed.found.called_with.values())
    return value if own else called.value


def _only_value(script: Script, name: ast.Name, binder: ast.AST) -> ast.expr | None:
    """The one value that a variable of a function, or a file, is ever given."""
    inside = [*ast.walk(binder)]
    stores = [each for each in inside if isinstance(each, ast.Name) and each.id == name.id]
    stores = [each for each in stores if not isinstance(each.ctx, ast.Load) and binder_of(script, each) is binder]
    assign = script.parents[stores[0]] if len(stores) == 1 else None
    given = isinstance(binder, FUNCTIONS) and name.id in parameters_of(binder)
    if given or any(name.id in bound_otherwise(each) for each in inside):
        return None
    return assign.value if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None


def is_of_object(program: Program, script: Script, node: ast.expr, there: Script, own: ast.expr) -> bool:
    """Whether an expression is an attribute of a variable's object, which is one of the only class that has it, and
    gives it to each in its `__init__`.

    Args: the program; the file, the expression; the file and the expression by which that class knows it.
    """
    cls = class_around(there, own)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or not isinstance(cls, ast.ClassDef):
        return False
    made = _only_value(script, node.value, binder_of(script, node.value))
    if not isinstance(made, ast.Call) or last_name(made.func) != cls.name:
        return False
    stores = _stores(program, node.attr)
    alone = bool(stores) and all(class_around(other, each) is cls for other, each in stores)
    given = alone and ast.unparse(own) == f"self.{node.attr}" and _is_given_first(program, node.attr, cls)
    return given and not _may_grow(program, node.attr, cls)


def is_of_another(program: Program, script: Script, stored: ast.Attribute, owner: ast.AST | None) -> bool:
    """Whether `self.model = …` is an attribute of a class that has nothing to do with that one."""
    own, bases = class_around(script, stored), program.followed.found.bases
    if ast.unparse(stored.value) != "self" or own is None or own is owner:
        return False
    related = any(is_above(bases, one, other) for one, other in ((own, owner), (owner, own)))
    return not related and not any(is_above(bases, own, each) and is_above(bases, owner, each) for each in bases)


def is_above(bases: Mapping[Any, set[Any]], one: ast.AST | None, other: ast.AST | None) -> bool:
    return any(each is one or is_above(bases, one, each) for each in bases.get(other, ()))


def _is_given_first(program: Program, name: str, cls: ast.AST | None) -> bool:
    """Whether objects of a class are given an attribute in their `__init__`, and nowhere else."""
    stores = [each for each in _stores(program, name) if not is_of_another(program, *each, cls)]
    made = (ast.unparse(each) == f"self.{name}" and getattr(script.scope(each), "name", "") for script, each in stores)
    return cls is not None and bool(stores) and all(each == "__init__" for each in made)


def _may_grow(program: Program, name: str, cls: ast.AST | None) -> bool:
    """Whether what objects of a class hold may get layers behind their `__init__`."""
    body = cls.body if isinstance(cls, ast.ClassDef) else []
    made_in = {each for each in body if isinstance(each, ast.FunctionDef) and each.name == "__init__"}
    return may_grow(program, frozenset({(None, name)}), frozenset(made_in), frozenset(_begun(program, name, cls)))


def _begun(program: Program, name: str, cls: ast.AST | None) -> Iterator[ast.Attribute]:
    """Where the `__init__` of another class gives its own object an attribute of that name, which is no layer of what
    the first class holds: that object is new."""
    for script, node in _stores(program, name):
        function = script.scope(node)
        if not isinstance(function, ast.FunctionDef) or not isinstance(script.parents[function], ast.ClassDef):
            continue
        this = [each.arg for each in function.args.args[:1]]
        if function.name == "__init__" and this == ["self"] and is_of_another(program, script, node, cls):
            yield node


def _stores(program: Program, name: str) -> list[tuple[Script, ast.Attribute]]:
    return [
        (script, node)
        for script in program.scripts
        for node in script.find(ast.Attribute)
        if node.attr == name and not isinstance(node.ctx, ast.Load)
    ]
