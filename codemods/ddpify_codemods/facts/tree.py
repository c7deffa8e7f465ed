"""A syntax tree, walked once for all that is asked of it: its nodes, those of each kind, the parent of each.

Contexts and operators (`ast.Load`, `ast.Add`) are left out: Python has one object of each for all trees, without a
place or a parent of its own, and they are two of five nodes.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

# How many files are kept in mind: a folder of scripts shares its modules, which are read and understood once.
KEPT = 2048

_WITHOUT_PLACE = frozenset({"ctx", "op", "ops"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}  # of a kind of node, those that may hold nodes
_LEAVES = (ast.Constant, ast.Name, ast.alias, ast.Global, ast.Nonlocal)


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of a file, parents before children; those of each kind; the parent of every node but the module."""

    nodes: tuple[ast.AST, ...]
    by_kind: Mapping[type[ast.AST], list[ast.AST]]
    parents: Mapping[ast.AST, ast.AST]


@lru_cache(maxsize=KEPT)
def parsed(text: str) -> ast.Module:
    """The syntax tree of a text, for all who ask; nobody changes it.

    Raises SyntaxError or ValueError for a text that is not Python 3.
    """
    return parsed_anew(text)


def parsed_anew(text: str) -> ast.Module:
    """A syntax tree of a text, for whoever wants to change it: quicker to have than a copy of another one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the author's "\\d" is not our business
        return ast.parse(text)


@lru_cache(maxsize=KEPT)
def index(module: ast.Module) -> Tree:
    """All that a walk over a file finds."""
    nodes: list[ast.AST] = [module]
    by_kind: dict[type[ast.AST], list[ast.AST]] = {}
    parents: dict[ast.AST, ast.AST] = {}
    for node in nodes:  # which grows on the way
        kind = type(node)
        if kind in by_kind:
            by_kind[kind].append(node)
        else:
            by_kind[kind] = [node]
        for child in children(node):
            parents[child] = node
            nodes.append(child)
    return Tree(tuple(nodes), by_kind, parents)


@lru_cache(maxsize=8 * KEPT)
def of_kinds(module: ast.Module, kinds: tuple[type[ast.AST], ...]) -> tuple[ast.AST, ...]:
    """The nodes of a file that are of some kinds (`ast.expr` is all expressions), parents before children."""
    tree = index(module)
    wanted = {kind for kind in tree.by_kind if issubclass(kind, kinds)}
    if len(wanted) == 1:
        return tuple(tree.by_kind[wanted.pop()])
    return tuple(node for node in tree.nodes if type(node) in wanted) if wanted else ()


@lru_cache(maxsize=KEPT)
def names_and_parts(scope: ast.AST) -> Mapping[type[ast.AST], list[ast.expr]]:
    """The names in a function or a file, and what is taken out of things there by a key, each kind for itself."""
    found: dict[type[ast.AST], list[ast.expr]] = {ast.Name: [], ast.Subscript: []}
    for node in walk(scope):
        if isinstance(node, ast.Name | ast.Subscript):
            found[type(node)].append(node)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, in the order of the source."""
    found: list[ast.AST] = []
    kind = type(node)
    if kind not in _FIELDS:
        _FIELDS[kind] = () if kind in _LEAVES else tuple(name for name in kind._fields if name not in _WITHOUT_PLACE)
    for name in _FIELDS[kind]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, parents before children: `ast.walk` without contexts and operators."""
    found = [node]
    for each in found:
        yield each
        found += children(each)
