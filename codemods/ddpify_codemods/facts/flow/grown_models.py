"""Whether models, by their names, may get layers behind their wrappers: `model.head = nn.Linear(5, 3)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import TypeAlias

from ..eager import is_move
from ..script import Script
from .program import Program
from .scopes import FUNCTIONS, binder_of, parameters_of
from .signatures import argument

_PUTS = frozenset({"append", "extend", "insert", "pop", "add_module", "register_module", "register_parameter"})
_INSIDE = frozenset({"_modules", "_parameters", "__dict__", "__setattr__", "__delattr__", "__setitem__", "__delitem__"})
_OF_MODEL = frozenset({"setattr", "delattr", "vars"})
# What is no layer, and holds none.
_NO_LAYERS = frozenset(
    {"data", "grad", "requires_grad", "training", "param_groups", "class_to_idx", "idx_to_class", "classes"}
)
# Methods that give the model, or parts of it; and functions.
_PARTS = frozenset({"to", "cuda", "cpu", "train", "eval", "get_submodule", "__getitem__", "values", "items"})
_PARTS |= {"children", "modules", "named_children", "named_modules"}
_OF_PARTS = frozenset({"getattr", "enumerate", "list", "tuple", "reversed", "zip", "next", "iter", "dict"})


# The variables of functions and files, and the attributes (of None), that hold a model, or a part of it.
Names: TypeAlias = Set[tuple[ast.AST | None, str]]


@lru_cache(maxsize=16)
def may_grow(
    program: Program, names: Names, made_in: Set[ast.AST], of_others: Set[ast.Attribute] = frozenset()
) -> bool:
    """Whether a model may get layers or parameters, or its optimizer other ones.

    Args: the program; what holds the model; the functions that make the model, where all may be done; attributes, by a
    name that holds the model elsewhere, which other objects are given.
    """
    functions: dict[ast.AST, list[ast.AST]] = {}
    for function, calls in program.followed.found.called_with.items():
        for call, _ in calls:
            functions.setdefault(call, []).append(function)
    known, before = {*names}, 0
    while len(known) > before:
        before = len(known)
        for script in program.scripts:
            for node in script.find(ast.Name, ast.Attribute):
                if not _is_known(script, node, known) or script.scope(node) in made_in:
                    continue
                top = _whole(script, node)
                if top is node and (node in of_others or _keeps(script, node, known)):
                    continue
                if _puts(script, top):
                    return True
                if top is not node or not _is_called(script, node):
                    known |= _others(script, top, functions)
    return any(
        node.attr == "add_param_group" and script.scope(node) not in made_in
        for script in program.scripts
        for node in script.find(ast.Attribute)
    )


def _is_known(script: Script, node: ast.Name | ast.Attribute, known: Names) -> bool:
    if isinstance(node, ast.Attribute):
        return (None, node.attr) in known
    return any(node.id == name for _, name in known) and (binder_of(script, node), node.id) in known


def _keeps(script: Script, node: ast.Name | ast.Attribute, known: Names) -> bool:
    """Whether an attribute is given the model, which is no part of the model by that: `self.model = model`."""
    assign = script.parents[node]
    value = assign.value if isinstance(assign, ast.Assign) and assign.targets == [node] else None
    while is_move(value):  # type: ignore[arg-type]
        value = value.func.value  # type: ignore[union-attr]
    is_model = isinstance(value, ast.Name | ast.Attribute) and _is_known(script, value, known)
    return isinstance(node, ast.Attribute) and is_model


def _is_called(script: Script, node: ast.expr) -> bool:
    parent = script.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _whole(script: Script, node: ast.expr) -> ast.expr:
    """The expression of the model, or of a part of it, that begins with a name of it: `model.blocks[0].append`."""
    while True:
        parent = script.parents[node]
        follows = isinstance(parent, ast.Attribute) and parent.attr not in _NO_LAYERS
        follows |= isinstance(parent, ast.Subscript) and parent.value is node
        follows |= isinstance(parent, ast.List | ast.Tuple)
        if isinstance(parent, ast.Call) and parent.func is node:
            follows = isinstance(node, ast.Attribute) and node.attr in _PARTS
        elif isinstance(parent, ast.Call):
            follows = isinstance(parent.func, ast.Name) and parent.func.id in _OF_PARTS
        if not follows:
            return node
        assert isinstance(parent, ast.expr)
        node = parent


def _puts(script: Script, top: ast.expr) -> bool:
    """Whether a part of the model becomes another one there."""
    parent = script.parents[top]
    parts = [part for part in ast.walk(top) if isinstance(part, ast.Attribute)]
    if any(part.attr in _INSIDE for part in parts):
        return True
    if isinstance(top, ast.Attribute | ast.Subscript) and not isinstance(top.ctx, ast.Load):
        statement = script.statement(top)
        return not isinstance(statement, ast.Assign) or not _is_plain(statement.value)
    if isinstance(parent, ast.Call) and parent.func is top:
        return isinstance(top, ast.Attribute) and top.attr in _PUTS
    called = parent.func if isinstance(parent, ast.Call) else None
    by_class = isinstance(called, ast.Attribute) and called.attr in _INSIDE  # `nn.Module.__setattr__(model, …)`
    return by_class or (isinstance(called, ast.Name) and called.id in _OF_MODEL)


def _is_plain(value: ast.expr) -> bool:
    """Whether a value is a number, a text, or a list of some."""
    plain = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.unaryop, ast.expr_context, ast.JoinedStr)
    return all(isinstance(each, plain) for each in ast.walk(value))


def _others(script: Script, top: ast.expr, functions: Mapping[ast.AST, list[ast.AST]]) -> Names:
    """What else gets the model there, or a part of it: variables of functions, of its methods, and attributes."""
    parent = script.parents[top]
    given = script.parents[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(given, ast.Call):
        called = [each for each in functions.get(given, ()) if isinstance(each, FUNCTIONS)]
        if given.func is top:
            applied = [each.id for each in given.args if isinstance(each, ast.Name)] if _is_apply(top) else []
            called += [each for each in script.find(*FUNCTIONS) if each.name in applied]
            return {(each, first.arg) for each in called for first in each.args.args[:1]}
        names = [(each, name) for each in called for name in parameters_of(each)]
        return {(each, name) for each, name in names if argument(each, name, given) is top}
    target: ast.AST | None = None
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is top:
        target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
    elif isinstance(parent, ast.For | ast.comprehension) and parent.iter is top:
        target = parent.target
    parts = [*ast.walk(target)] if target is not None else []
    stored = [each for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    attributes = [each for each in parts if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]
    return {*((binder_of(script, each), each.id) for each in stored), *((None, each.attr) for each in attributes)}


def _is_apply(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "apply"
