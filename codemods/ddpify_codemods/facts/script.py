"""A script as the rules see it: its syntax tree with parents, and what its names mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from .star_imports import star_names
from .tree import KEPT, index, of_kinds

if TYPE_CHECKING:
    from ..view import View
    from .flow.program import Program

__all__ = ["KEPT", "Script"]

Node = TypeVar("Node", bound=ast.AST)
Second = TypeVar("Second", bound=ast.AST)
Third = TypeVar("Third", bound=ast.AST)


@dataclass(frozen=True, eq=False)
class Script:
    """One file of the program.

    path: where it came from, for messages. text: its source. tree: its syntax tree (ast).
    is_entry: whether it is the file that gets started. defined: names of every function, class and method defined in
    any file of the program (a call of one of these is not a call of a library). roots: the folders where absolute
    imports are found; none if that is not known. inherited: names of libraries that come through other files.
    only_asks_for_group: whether the program asks torch.distributed for a process group, but never joins one. view: what
    is known of a file that is converted already. in_converted: whether any file of the program is. program: all of its
    files, for rules that follow values from one to another. never_used: of a file that has a function which joins a
    process group, the functions that the program never calls. joined_above: of the first file, the import above which
    the process group has to be joined for what that runs. for_samples: its functions that other files call for samples.
    inheriting: the classes of the program that have the __init__ of a library, or hand on to it what they do not know.
    modules: the files and packages of the program that are imported by one name, which a library may have, too.
    """

    path: Path
    text: str
    tree: ast.Module
    is_entry: bool
    defined: frozenset[str]
    roots: tuple[Path, ...] = ()
    inherited: tuple[tuple[str, str], ...] = ()
    only_asks_for_group: bool = False
    view: View | None = None
    in_converted: bool = False
    program: Program | None = None
    never_used: frozenset[str] = frozenset()
    joined_above: ast.stmt | None = None
    for_samples: frozenset[str] = frozenset()
    inheriting: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()

    def is_settled(self, node: ast.AST) -> bool:
        """Whether a conversion has made of the node what it would make of it now."""
        return self.view is not None and node in self.view.nodes

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, parents before children."""
        return index(self.tree).nodes

    @overload
    def find(self, kind: type[Node], /) -> Iterator[Node]: ...

    @overload
    def find(self, first: type[Node], second: type[Second], /) -> Iterator[Node | Second]: ...

    @overload
    def find(
        self, first: type[Node], second: type[Second], third: type[Third], /
    ) -> Iterator[Node | Second | Third]: ...

    @overload
    def find(self, *kinds: type[Node]) -> Iterator[Node]: ...

    def find(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Every node of some kinds, parents before children."""
        return iter(of_kinds(self.tree, kinds))

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """Every import statement."""
        return tuple(self.find(ast.Import, ast.ImportFrom))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The parent of every node but the module."""
        return index(self.tree).parents

    @cached_property
    def generators(self) -> frozenset[ast.AST]:
        """The functions that yield, and those around them."""
        yields = (*self.find(ast.Yield), *self.find(ast.YieldFrom))
        return frozenset(parent for node in yields for parent in self.ancestors(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The parents of a node, the nearest first; the module is the last."""
        parents = self.parents
        while node in parents:
            node = parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that contains the node (or is it)."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which one stands."""
        parent = self.parents[statement]
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        return next((block for block in blocks if isinstance(block, list) and statement in block), [statement])

    def scope(self, node: ast.AST) -> ast.Module | ast.FunctionDef | ast.AsyncFunctionDef:
        """The function around a node, or the module."""
        for parent in self.ancestors(node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return parent
        return self.tree

    @cached_property
    def stores(self) -> Mapping[tuple[ast.AST, str], list[ast.Name]]:
        """Where each function, or the file outside of functions, gives a name a value, in order; no parameters."""
        found: dict[tuple[ast.AST, str], list[ast.Name]] = {}
        names = (each for each in self.find(ast.Name) if isinstance(each.ctx, ast.Store))
        for each in sorted(names, key=lambda each: (each.lineno, each.col_offset)):
            found.setdefault((self.scope(each), each.id), []).append(each)
        return found

    @cached_property
    def imported(self) -> Mapping[str, str]:
        """What each imported name means: {"optim": "torch.optim", "DataLoader": "torch.utils.data.DataLoader"}."""
        inherited = dict(self.inherited)
        names = {**self.by_star, **inherited}
        for node in self.imports:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        names[alias.asname] = alias.name
                    else:
                        names[alias.name.split(".")[0]] = alias.name.split(".")[0]
            elif not node.level and node.module:
                for alias in node.names:
                    name = alias.asname or alias.name
                    if name not in inherited:
                        names[name] = f"{node.module}.{alias.name}"
        return names

    @cached_property
    def by_star(self) -> Mapping[str, str]:
        """What star imports of libraries give, and the file does not define itself."""
        names = dict(star_names(self.star_imports))
        own = {node.id for node in self.find(ast.Name) if isinstance(node.ctx, ast.Store)} if names else set()
        return {name: meaning for name, meaning in names.items() if name not in own | self.defined}

    @cached_property
    def star_imports(self) -> tuple[str, ...]:
        """Modules of which everything is imported: `from torch.nn import *`."""
        return tuple(
            node.module
            for node in self.find(ast.ImportFrom)
            if node.module and not node.level and any(alias.name == "*" for alias in node.names)
        )

    def qualified(self, node: ast.AST) -> str:
        """The full dotted name of an expression: "torch.optim.SGD" for `optim.SGD`; "" when it has none.

        A name that is not imported stays as it is written ("open", "self.model").
        """
        known = self._qualified.get(node)
        if known is None:
            known = self._qualified[node] = self._dotted(node)
        return known

    @cached_property
    def _qualified(self) -> dict[ast.AST, str]:
        """What has been asked for already: every rule asks for the names of the same calls."""
        return {}

    def _dotted(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.imported.get(node.id, node.id))
        return ".".join(reversed(parts))
