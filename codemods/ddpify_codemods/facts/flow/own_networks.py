"""Whether what a program looks up, or lets a library make, may be a network of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..called_modules import last_name
from ..script import Script

# What they give is chosen by its name, among what the program has, too.
LOOKS_UP = frozenset(
    {"eval", "globals", "locals", "vars", "__import__", "importlib.import_module", "types.MethodType", "pydoc.locate"}
    | {f"hydra.utils.{each}" for each in ("instantiate", "call", "get_class", "get_method", "get_object")}
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_READS = frozenset({"keys", "values", "items", "get"})  # of a dict
_LOOKS = frozenset({"getattr", "hasattr", "dir", "vars", "sorted", "list", "set", "len", "print"})
_OF_PROGRAM = frozenset({"__main__", "builtins", "sys"})
_SAYS = frozenset({"__dict__", "__name__", "__file__", "__version__", "__all__"})
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


def only_made(scripts: Sequence[Script]) -> bool:
    """Whether a program's classes of networks are only called, derived from and asked for: none of them can come into
    a library, by whatever way."""
    classes = [node for script in scripts for node in script.find(ast.ClassDef)]
    names = {node.name for node in classes if _is_network(node)}
    while more := {node.name for node in classes if names & {last_name(each) for each in node.bases}} - names:
        names |= more
    functions = (node for script in scripts for node in script.find(*_FUNCTIONS))
    names |= {getattr(node, "name", "lambda") for node in functions if names & _named(node)}
    given = (each for node in classes if node.name in names for each in (*node.keywords, *node.decorator_list))
    aliases = (alias for script in scripts for each in script.imports for alias in each.names)
    names |= {alias.asname for alias in aliases if alias.asname and alias.name in names}
    uses = ((script, node) for script in scripts for node in script.find(ast.Name, ast.Attribute))
    made = (_only_makes(script, node) for script, node in uses if last_name(node) in names)
    return "lambda" not in names and not [*given] and all(made)


def _named(node: ast.AST) -> set[str]:
    return {last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def _only_makes(script: Script, node: ast.expr) -> bool:
    parent = script.parents[node]
    if isinstance(parent, ast.Call):
        return parent.func is node or script.qualified(parent.func) in ("isinstance", "issubclass", "super")
    return isinstance(parent, ast.ClassDef | ast.arg | ast.FunctionDef | ast.AnnAssign)


def table_of(called: ast.expr) -> ast.expr | None:
    """What is looked into by a name: `models` of `getattr(models, name)`, `models.__dict__[name]` and
    `vars(models)[name]`; None elsewhere."""
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "getattr":
        return called.args[0] if len(called.args) == 2 else None
    table = called.value if isinstance(called, ast.Subscript) else None
    if isinstance(table, ast.Call) and isinstance(table.func, ast.Name) and table.func.id == "vars":
        return table.args[0] if len(table.args) == 1 else None
    return table.value if isinstance(table, ast.Attribute) and table.attr == "__dict__" else None


def is_only_read(scripts: Sequence[Script], library: str) -> bool:
    """Whether a program only takes what a library has, and can put nothing of its own in it, as
    `models.__dict__[name] = Net` does.

    Args: its scripts; the name of a library, "torchvision.models".
    """
    parts = library.split(".")
    if parts[0] in _OF_PROGRAM or not only_made(scripts):
        return False
    names = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    imported = any(f"{each}.".startswith(f"{parts[0]}.") for script in scripts for each in script.imported.values())
    uses = ((script, node) for script in scripts for kind in (ast.Name, ast.Attribute) for node in script.find(kind))
    return imported and all(_is_read(script, node) for script, node in uses if script.qualified(node) in names)


def _is_read(script: Script, node: ast.expr) -> bool:
    """Whether something of a library is only taken of it, where a library is named, or its `__dict__`."""
    parent = script.parents[node]
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(parent, ast.Attribute):
        hidden = parent.attr.startswith("__") and parent.attr not in _SAYS
        read = _is_table_read(script, parent) if parent.attr == "__dict__" else not hidden
        return read and isinstance(parent.ctx, ast.Load)
    if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Name) or parent.func.id not in _LOOKS:
        return False
    asked = [each.value for each in parent.args[1:2] if isinstance(each, ast.Constant)]
    return _is_table_read(script, parent) if parent.func.id == "vars" else not any("__" in str(each) for each in asked)


def _is_table_read(script: Script, table: ast.expr) -> bool:
    """Whether what a library has is taken out of its `__dict__`, and nothing put in."""
    parent = script.parents[table]
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READS
    looks = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _LOOKS
    return looks or isinstance(parent, ast.Compare | ast.For | ast.comprehension)


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
