"""How many dimensions an array or tensor has that the script makes, where that is seen in its text.

0 for a number, 1 for `torch.rand(n)`, 2 for `torch.rand(n, 3)`; None where that is not seen. What names are given is
taken from the last assignment that stands before them and surely ran.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from .array_calls import ArrayCalls, Dimensions, alike, most
from .array_functions import BUNCHES, LIBRARIES, SAME, TEXTS
from .origins import passed, sources
from .script import Script

_DEPTH = 24


class ArrayDimensions(ArrayCalls):
    """Those of the expressions of a file.

    known: those of names that are something else than what is assigned to them, as the index of `__getitem__`.
    """

    def __init__(self, script: Script, known: dict[tuple[ast.AST, str], Dimensions] | None = None) -> None:
        self.script = script
        self.known = known or {}
        self.left = 2000  # how much is looked at
        self.open: set[ast.expr] = set()

    def of(self, node: ast.expr | None, depth: int = _DEPTH) -> Dimensions:
        """The dimensions of what an expression gives."""
        self.left -= 1
        if node is None or depth <= 0 or self.left <= 0 or node in self.open:
            return None
        self.open.add(node)
        found = self._of(node, depth - 1)
        self.open.discard(node)
        return found

    def number(self, node: ast.expr | None, depth: int) -> int | None:
        """The same of one array."""
        found = self.of(node, depth)
        return found if isinstance(found, int) else None

    def _of(self, node: ast.expr, depth: int) -> Dimensions:
        if isinstance(node, ast.Constant):
            return 0 if isinstance(node.value, int | float) else None
        if isinstance(node, ast.Name):
            return self.of_name(node, depth)
        if isinstance(node, ast.Attribute):
            return self.of_attribute(node, depth)
        if isinstance(node, ast.UnaryOp | ast.NamedExpr):
            return self.of(node.operand if isinstance(node, ast.UnaryOp) else node.value, depth)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.MatMult):
                return self.product(node.left, node.right, depth)
            return most([self.number(node.left, depth), self.number(node.right, depth)])
        if isinstance(node, ast.Compare):
            return most([self.number(each, depth) for each in (node.left, *node.comparators)])
        if isinstance(node, ast.List | ast.Tuple):
            inner = [self.number(each, depth) for each in node.elts[:3]]
            return inner[0] + 1 if inner and inner[0] is not None and len({*inner}) == 1 else None
        if isinstance(node, ast.ListComp):
            inner_known = self.number(node.elt, depth)
            return None if inner_known is None else inner_known + 1
        if isinstance(node, ast.IfExp):
            return alike([self.of(node.body, depth), self.of(node.orelse, depth)])
        if isinstance(node, ast.Subscript):
            return self.of_subscript(node, depth)
        return self.of_call(node, depth) if isinstance(node, ast.Call) else None

    def product(self, left: ast.expr, right: ast.expr, depth: int) -> int | None:
        """The dimensions of a product of matrices or vectors."""
        first, second = self.number(left, depth), self.number(right, depth)
        if first is None or second is None or not first or not second or max(first, second) > 2:
            return None
        return first + second - 2

    def of_name(self, node: ast.Name, depth: int) -> Dimensions:
        scope = self.script.scope(node)
        if (scope, node.id) in self.known:
            return self.known[scope, node.id]
        stores = self.script.stores.get((scope, node.id), [])
        if not stores and isinstance(scope, ast.FunctionDef):
            parameter = next((each for each in ast.walk(scope.args) if _is_parameter(each, node.id)), None)
            if parameter is not None:
                return self.of_parameter(scope, parameter, depth)
            stores = self.script.stores.get((self.script.tree, node.id), [])
            return alike([self.given(each, depth) for each in stores]) if len(stores) < 4 else None
        comprehended = self.of_comprehension(node, depth)
        if comprehended is not None:
            return comprehended
        before = [each for each in stores if _ends(self.script.statement(each)) <= (node.lineno, node.col_offset)]
        last = max(before, key=lambda each: (each.lineno, each.col_offset), default=None)
        if last is None:
            return None
        block = self.script.block(self.script.statement(last))
        around = [node, *self.script.ancestors(node)]
        turns = any(
            isinstance(each, ast.For | ast.While) and each not in self.script.ancestors(last) for each in around
        )
        if not any(each in around for each in block) or (turns and len(stores) > 1):
            return alike([self.given(each, depth) for each in stores]) if len(stores) < 4 else None
        return self.given(last, depth)

    def of_parameter(self, function: ast.FunctionDef, parameter: ast.arg, depth: int) -> Dimensions:
        """The dimensions of what the callers in the file hand over, or the function takes without."""
        if parameter.annotation is not None and ast.unparse(parameter.annotation) in ("int", "float"):
            return 0
        names = function.args
        by_place = [*names.posonlyargs, *names.args]
        defaults = dict(zip(reversed(by_place), reversed(names.defaults), strict=False))
        defaults |= {key: value for key, value in zip(names.kwonlyargs, names.kw_defaults, strict=True) if value}
        given = [
            *passed(self.script, function, parameter.arg),
            *([defaults[parameter]] if parameter in defaults else []),
        ]
        return alike([self.of(each, depth) for each in given])

    def of_comprehension(self, node: ast.Name, depth: int) -> Dimensions:
        """The dimensions of the variable of a comprehension: one less than that of what it runs over."""
        for each in self.script.ancestors(node):
            for part in each.generators if isinstance(each, ast.ListComp | ast.GeneratorExp) else ():
                if isinstance(part.target, ast.Name) and part.target.id == node.id:
                    if isinstance(part.iter, ast.Call) and ast.unparse(part.iter.func) == "range":
                        return 0
                    over = self.number(part.iter, depth)
                    return over - 1 if over else None
        return None

    def given(self, name: ast.Name, depth: int) -> Dimensions:
        """The dimensions of what a statement gives to a name."""
        statement = self.script.statement(name)
        if isinstance(statement, ast.For):
            return 0 if statement.target is name and ast.unparse(statement.iter).startswith("range(") else None
        if isinstance(statement, ast.AnnAssign):
            return self.of(statement.value, depth)
        if isinstance(statement, ast.AugAssign):
            earlier = self.script.stores.get((self.script.scope(name), name.id), [])
            before = [each for each in earlier if (each.lineno, each.col_offset) < (name.lineno, name.col_offset)]
            return self.given(before[-1], depth - 1) if before and depth > 0 else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        return self.placed(statement.targets[0], name, statement.value, depth)

    def appended(self, name: ast.Name, depth: int) -> Dimensions:
        """The dimensions of a list that is made empty and gets its entries by `append`."""
        scope = self.script.scope(name)
        used = [each for each in ast.walk(scope) if isinstance(each, ast.Attribute) and _is_name(each.value, name.id)]
        calls = [self.script.parents[each] for each in used if each.attr == "append"]
        entries = [each.args[0] for each in calls if isinstance(each, ast.Call) and len(each.args) == 1]
        inner = alike([self.number(each, depth) for each in entries]) if len(entries) == len(used) else None
        return inner + 1 if isinstance(inner, int) else None

    def placed(self, target: ast.expr, name: ast.expr, value: ast.expr, depth: int) -> Dimensions:
        """The dimensions of what a part of a target gets of a value."""
        if isinstance(target, ast.Name) and target is name and isinstance(value, ast.List) and not value.elts:
            return self.appended(target, depth)
        if target is name:
            return self.of(value, depth)
        if not isinstance(target, ast.Tuple) or any(isinstance(each, ast.Starred) for each in target.elts):
            return None
        place = next((at for at, each in enumerate(target.elts) if name in ast.walk(each)), None)
        if place is None:
            return None
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            return self.placed(target.elts[place], name, value.elts[place], depth)
        several = self.of(value, depth) if target.elts[place] is name else None
        return several[place] if isinstance(several, tuple) and place < len(several) else None

    def of_attribute(self, node: ast.Attribute, depth: int) -> Dimensions:
        if node.attr in ("data", "target") and self.calls_one_of(node.value, BUNCHES):
            return 2 if node.attr == "data" else 1
        if node.attr in SAME:
            return self.of(node.value, depth)
        if node.attr in ("iloc", "loc"):
            return self.of(node.value, depth)
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return None
        cls = next((each for each in self.script.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        found: list[Dimensions] = []
        for each in ast.walk(cls) if cls is not None else ():
            if isinstance(each, ast.Assign) and len(each.targets) == 1:
                for part in ast.walk(each.targets[0]):
                    if isinstance(part, ast.Attribute) and ast.unparse(part) == ast.unparse(node):
                        parent = self.script.parents[part]
                        own = isinstance(parent, ast.Assign | ast.Tuple)  # not `self.x[0] = …`
                        found += [self.placed(each.targets[0], part, each.value, depth)] if own else []
            elif isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == ast.unparse(node):
                found.append(self.of(each.value, depth))
        return alike(found)

    def calls_one_of(self, node: ast.expr, names: frozenset[str]) -> bool:
        """Whether a value is what a function of a library gives that has one of some names."""
        made = [node] if isinstance(node, ast.Call) else sources(self.script, node)
        called = [self.script.qualified(each.func) if isinstance(each, ast.Call) else "" for each in made]
        return bool(called) and all(each.rpartition(".")[2] in names and each.startswith(LIBRARIES) for each in called)

    def of_subscript(self, node: ast.Subscript, depth: int) -> Dimensions:
        owner = self.of(node.value, depth)
        if isinstance(owner, tuple):
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return owner[at] if isinstance(at, int) and -len(owner) <= at < len(owner) else None
        if owner is None and isinstance(node.slice, ast.Tuple) and self.calls_one_of(node.value, TEXTS):
            owner = len(node.slice.elts)
        if owner is None:
            return None
        found = owner
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...):
                continue
            if isinstance(part, ast.Constant) and part.value is None:
                found += 1
            elif isinstance(part, ast.Constant) and isinstance(part.value, int | str):
                found -= 1
            elif isinstance(part, ast.List) and part.elts and all(isinstance(each, ast.Constant) for each in part.elts):
                continue
            else:
                index = self.number(part, depth)
                if index is None or index > 1:
                    return None
                found += index - 1
        return found if found >= 0 else None


def _is_parameter(node: ast.AST, name: str) -> TypeGuard[ast.arg]:
    return isinstance(node, ast.arg) and node.arg == name


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _ends(node: ast.AST) -> tuple[int, int]:
    """Where a statement ends that gives a value; a compound one gives it where it begins."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
