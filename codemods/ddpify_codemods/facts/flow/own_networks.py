"""Whether what a program looks up, or lets a library make, may be a network of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..script import Script

# What they give is chosen by its name, among what the program has, too.
LOOKS_UP = frozenset(
    {"eval", "globals", "locals", "vars", "__import__", "importlib.import_module", "types.MethodType", "pydoc.locate"}
    | {f"hydra.utils.{each}" for each in ("instantiate", "call", "get_class", "get_method", "get_object")}
)
_WRAPPING = ("torch.", "functools.lru_cache", "functools.cache", "functools.wraps", "contextlib.", "dataclasses.")


def has_networks(scripts: Iterable[Script]) -> bool:
    """Whether a program has classes of networks."""
    return any(_is_network(node) for script in scripts for node in script.find(ast.ClassDef))


def hands_over_networks(scripts: Sequence[Script]) -> bool:
    """Whether a program hands classes of networks, or functions that nothing else names, to decorators, which may be
    those of a registry."""
    given = [node for script in scripts for node in script.tree.body if _may_be_registered(script, node)]
    if any(isinstance(node, ast.ClassDef) and _is_network(node) for node in given):
        return True
    functions = {node.name for node in given if isinstance(node, ast.FunctionDef)}
    named = {node.id for script in scripts for node in script.find(ast.Name)}
    named |= {node.attr for script in scripts for node in script.find(ast.Attribute)}
    return bool(functions - named) and has_networks(scripts)


def _may_be_registered(script: Script, node: ast.stmt) -> bool:
    """Whether a class or a function has a decorator, other than one that only wraps it: `@torch.no_grad()`."""
    return not all(script.qualified(each).startswith(_WRAPPING) for each in _decorators(node))


def is_called_by_library(script: Script, function: ast.AST) -> bool:
    """Whether a decorator of a library may call a function with what nobody sees: `@click.option(…)` gives it what the
    command line says."""
    names = (script.qualified(each) for each in _decorators(function))
    own = (*_WRAPPING, "staticmethod", "classmethod", "property", "abc.")
    return any(name.rpartition(".")[2] not in script.defined and not name.startswith(own) for name in names)


def _decorators(node: ast.AST) -> list[ast.expr]:
    """What decorates a class or a function, or makes what does."""
    given: list[ast.expr] = getattr(node, "decorator_list", [])
    return [each.func if isinstance(each, ast.Call) else each for each in given]


def _is_network(node: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)
