"""Which expressions are modules: those that are called, or handed to the functions of the program."""

from __future__ import annotations

import ast
from functools import lru_cache

from .script import KEPT, Script

COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
# Methods that no library has as a function.
OF_MODULES = frozenset({"parameters", "named_parameters"})
# Modules that hold others and are never called, and how to run over what they hold.
CONTAINERS = {"torch.nn.ModuleList": "", "torch.nn.ModuleDict": ".values()"}


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`; "" for what has no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def called_prefix(script: Script, node: ast.expr) -> ast.expr | None:
    """The shortest part of `model.features[0]` that is called as a module, or handed to a function of the program."""
    return shortest(node, called(script) | _handed_over(script))


def shortest(node: ast.expr, names: frozenset[str]) -> ast.expr | None:
    """The shortest part of `model.features[0]` that is one of some expressions."""
    prefixes = [node]
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                break
            node = node.func  # a method, which is called but no module
        node = node.value
        prefixes.append(node)
    return next((part for part in reversed(prefixes) if ast.unparse(part) in names), None)


def called_model(call: ast.Call) -> ast.expr:
    """The model that a call calls, if it calls one: `model(x)`, `model.forward(x)`."""
    by_name = isinstance(call.func, ast.Attribute) and call.func.attr == "forward"
    return call.func.value if by_name else call.func  # type: ignore[attr-defined]


@lru_cache(maxsize=KEPT)
def called(script: Script) -> frozenset[str]:
    """The expressions that are called, other than functions and `self`."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    called = {ast.unparse(called_model(call)) for call in script.find(ast.Call) if isinstance(call.func, kinds)}
    return frozenset(called - libraries(script) - script.defined - {"self", "super"})


@lru_cache(maxsize=KEPT)
def _handed_over(script: Script) -> frozenset[str]:
    """The names that are arguments of functions of the program."""
    handed = {
        ast.unparse(value)
        for call in script.find(ast.Call)
        if last_name(call.func) in script.defined
        for value in call.args
        if isinstance(value, (ast.Name, ast.Attribute))
    }
    return frozenset(handed - libraries(script) - _collections(script) - {"self"})


def _collections(script: Script) -> set[str]:
    """The names of lists, dicts and the like, and of the modules that only hold others."""
    displays = (ast.Dict, ast.List, ast.Tuple, *COMPREHENSIONS)
    calls = {"dict", "list", "tuple", "zip", "argparse.Namespace", *CONTAINERS}
    return {
        ast.unparse(target)
        for assign in script.find(ast.Assign)
        for target in assign.targets
        if isinstance(assign.value, displays)
        or (
            isinstance(assign.value, ast.Call)
            and (script.qualified(assign.value.func) in calls or last_name(assign.value.func) == "parse_args")
        )
    }


@lru_cache(maxsize=KEPT)
def libraries(script: Script) -> frozenset[str]:
    """The imported names that are not given another meaning later (`model = model.Net()`), and are no models that
    another file has made (`model.parameters()`)."""
    assigned = {name.id for name in script.find(ast.Name) if isinstance(name.ctx, ast.Store)}
    methods = (call.func for call in script.find(ast.Call) if isinstance(call.func, ast.Attribute))
    models = {each.value.id for each in methods if each.attr in OF_MODULES and isinstance(each.value, ast.Name)}
    return frozenset(set(script.imported) - assigned - models)


def root(node: ast.expr) -> str:
    """`a` of `a.b().c[0]`; "" for what has no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
