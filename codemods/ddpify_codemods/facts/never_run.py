"""What imported files hold that a program never runs: functions, classes and methods that nothing names which it runs.

Other programs may run them, as they stand: they know of no process group.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from .reach import libraries_of, run_alone, run_in_program, uses_names
from .script import KEPT, Script
from .tree import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEPTH = 5  # classes above a class
_LIBRARIES = (
    "torch.nn.",
    "torch.utils.data.",
    "abc.ABC",
    "typing.Generic",
)  # what is derived from these is not told of
_TELLS = frozenset({"__init_subclass__", "__getattr__", "__getattribute__", "__reduce__", "__set_name__"})
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "abstractmethod", "no_grad()"})
# Classes that a file of settings names.
_BY_TEXT = ("instantiate", "_target_", "locate(", "jsonargparse", "LightningCLI", "import gin")


def never_run(scripts: Sequence[Script], script: Script) -> frozenset[ast.AST]:
    """The functions, classes and methods of an imported file that a program never runs.

    Args: its scripts, the one that is started first; the file.
    """
    found = set(run_alone(scripts, script))
    if script is not scripts[0] and not any(text in each.text for each in scripts for text in _BY_TEXT):
        reached, named = run_in_program(tuple(scripts)), _named(tuple(scripts))
        for node in script.tree.body:
            if not isinstance(node, ast.ClassDef) or not _is_plain(scripts, script, node):
                continue
            if node not in reached:
                found.add(node)
            elif named is not None:
                found.update(each for each in _methods(script, node) if each.name not in named)
    return frozenset(found)


def _is_plain(scripts: Sequence[Script], script: Script, node: ast.ClassDef, depth: int = _DEPTH) -> bool:
    """Whether nothing is told of a class when it is defined: by a decorator, a metaclass or something it inherits."""
    tells = any(getattr(each, "name", "") in _TELLS for each in node.body)
    if tells or node.decorator_list or node.keywords or not depth:
        return False
    return all(_is_plain_base(scripts, script, base, depth) for base in node.bases)


def _is_plain_base(scripts: Sequence[Script], script: Script, base: ast.expr, depth: int) -> bool:
    if script.qualified(base).startswith(_LIBRARIES):
        return True
    name = ast.unparse(base).rpartition(".")[2]
    own = [(each, node) for each in scripts for node in each.find(ast.ClassDef) if node.name == name]
    return name == "object" or (len(own) == 1 and _is_plain(scripts, *own[0], depth - 1))


def _methods(script: Script, node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of a class that nobody calls but the program itself: no layer's, since torch calls some of them."""
    if any(script.qualified(base).startswith("torch.nn.") for base in node.bases):
        return
    for each in (each for each in node.body if isinstance(each, _FUNCTIONS) and not each.name.startswith("__")):
        if {ast.unparse(decorator).rpartition(".")[2] for decorator in each.decorator_list} <= _PLAIN_DECORATORS:
            yield each


@lru_cache(maxsize=KEPT)
def _named(scripts: tuple[Script, ...]) -> frozenset[str] | None:
    """The names in what a program runs, but for those of libraries; None where names are made in the run."""
    reached, libraries, found = run_in_program(scripts), libraries_of(scripts), set()
    for node in reached:
        if not uses_names(node):
            return None
        for part in walk(node):
            if isinstance(part, ast.Name):
                found.add(part.id)
            elif isinstance(part, ast.Attribute) and _root(part) not in libraries:
                found.add(part.attr)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                found.add(part.value)
            elif isinstance(part, ast.alias):
                found.add(part.name.rpartition(".")[2])
    return frozenset(found)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
