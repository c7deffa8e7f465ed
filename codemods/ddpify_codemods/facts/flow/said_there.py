"""The expressions of a function in the words of the place where a loader is made."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..script import Script
from .values import Function


@dataclass(frozen=True)
class Place:
    """A call in a file of a program, of which these are all files."""

    script: Script
    call: ast.Call
    scripts: Sequence[Script]


def said_at(place: Place, node: ast.expr, function: Function, codes: Mapping[str, ast.expr | None]) -> ast.expr | None:
    """An expression of a function as a place says it; None where that has no words for it.

    codes: what the place says for names of the function; None for those that it cannot say.
    """
    said = _Said(place, function, codes)
    found = said.visit(copy.deepcopy(node))
    return found if said.known else None


def said_by_default(function: Function, place: Place) -> dict[str, ast.expr | None]:
    """What the parameters of a function stand for that it is not given."""
    return {name: said_at(place, value, function, {}) for name, value in defaults(function.node).items()}


def defaults(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, ast.expr]:
    """What the parameters of a function are by default."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    found = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
    by_name = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return found | {each.arg: value for each, value in by_name if value is not None}


class _Said(ast.NodeTransformer):
    known = True

    def __init__(self, place: Place, function: Function, codes: Mapping[str, ast.expr | None]) -> None:
        self.place, self.function, self.codes = place, function, codes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self.codes[node.id] if node.id in self.codes else self.free(node)
        self.known &= found is not None
        return copy.deepcopy(found) if found is not None else node

    def free(self, node: ast.Name) -> ast.expr | None:
        """What a name is that the function does not give a value."""
        own, script = self.function.script, self.place.script
        binder = binder_of(own, self.function.node, node.id)
        there = binder_of(script, self.place.call, node.id)
        if "." in node.id:  # an attribute of which nothing is known
            return None
        if own is script:
            return node if there is binder else None
        if binder is not own.tree:
            return None
        same = there is script.tree and _is_same_name(node.id, own, script)
        return node if same else constant_of(self.place.scripts, own, node.id)


def _is_same_name(name: str, script: Script, other: Script) -> bool:
    """Whether two files mean the same by a name: one has it from the other, or both from a third."""
    meant = other.imported.get(name, "")
    module, _, there = meant.rpartition(".")
    own = (other.tree, name) in other.stores or (
        meant == script.imported.get(name) and (script.tree, name) in script.stores
    )
    from_there = there == name and _is_module(script, module)
    return bool(meant) and not own and (from_there or script.imported.get(name) == meant)


def _is_module(script: Script, module: str) -> bool:
    """Whether a file may be a module of some name."""
    path = script.path.parent if script.path.name == "__init__.py" else script.path.with_suffix("")
    parts = tuple(module.split("."))
    return bool(module) and path.parts[-len(parts) :] == parts


def constant_of(scripts: Sequence[Script], script: Script, name: str, depth: int = 3) -> ast.expr | None:
    """The number or text that a name of a file stands for, whatever runs, in the file itself or in one from which it
    is imported; None for others."""
    given = [node for node in script.imports for alias in node.names if _is_bound(alias, name)]
    stores = script.stores.get((script.tree, name), [])
    statement = script.parents[stores[0]] if stores else given[0] if given else None
    once = len(stores) + len(given) == 1 and statement in script.tree.body and name not in script.defined
    if not once or depth < 1 or any(_may_set(each, name) for each in scripts):
        return None
    if isinstance(statement, ast.Assign) and statement.targets == stores:
        return statement.value if _is_literal(statement.value) else None
    module, _, there = script.imported.get(name, "").rpartition(".")
    files = [each for each in scripts if _is_module(each, module)]
    return constant_of(scripts, files[0], there, depth - 1) if given and len(files) == 1 else None


def _is_bound(alias: ast.alias, name: str) -> bool:
    return alias.name == "*" or (alias.asname or alias.name.partition(".")[0]) == name


def _may_set(script: Script, name: str) -> bool:
    """Whether a file sets a name of another one, or of its own from within a function: `names.END = 1`,
    `setattr(names, "END", 1)`, `global END`."""
    attributes = any(each.attr == name and not isinstance(each.ctx, ast.Load) for each in script.find(ast.Attribute))
    said = any(each.value == name for each in script.find(ast.Constant))
    return attributes or said or any(name in each.names for each in script.find(ast.Global))


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, str)


def binder_of(script: Script, node: ast.AST, name: str) -> ast.AST:
    """The function whose variable a name is where a node stands, or the file."""
    for parent in (node, *script.ancestors(node)):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and name in _own(script, parent):
            return parent
    return script.tree


def _own(script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """The variables of a function, but for those of its comprehensions."""
    yield from (each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg))
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and script.scope(each) is function:
            if not any(isinstance(parent, ast.comprehension) for parent in script.ancestors(each)):
                yield each.id
        elif isinstance(each, ast.alias) and script.scope(each) is function:
            yield each.asname or each.name.partition(".")[0]


def in_words_of(node: ast.expr, codes: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with what its names stand for in their place."""
    return _Named(codes).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Named(ast.NodeTransformer):
    def __init__(self, codes: Mapping[str, ast.expr]) -> None:
        self.codes = codes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.codes.get(node.id, node))
