"""Collate functions: whether what one makes of its samples has them, each alone, along the first dimension."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Literal, TypeGuard

from ..script import Script
from .values import Function

# same: alike for all batches.  one: made of one sample, whichever it is.  first: made of a certain one.  column: a list
# with an entry for each sample.  counted: the same, each beside its number.  opened: a column of tensors whose first
# dimension is 1.  columns: a list of columns.  stacked: tensors with a row for each sample.  new: an empty list.
# apart: anything else.
_Kind = Literal["same", "one", "first", "column", "counted", "opened", "columns", "stacked", "new", "apart"]
_Part = _Kind | tuple["_Part", ...]
_Names = Mapping[str, "_Part"]

DEFAULTS = frozenset(f"torch.utils.data.{place}default_collate" for place in ("", "dataloader.", "_utils.collate."))
_STACKS = DEFAULTS | frozenset(
    {f"torch.{name}" for name in ("stack", "tensor", "as_tensor", "from_numpy")}
    | {f"torch.{name}Tensor" for name in ("", "Long", "Float", "Double", "Int", "Half", "Bool", "Byte")}
    | {f"numpy.{name}" for name in ("stack", "array", "asarray")}
)
_JOINS = frozenset({"torch.cat", "torch.concat", "numpy.concatenate"})
_LISTS = frozenset({"list", "tuple", "iter"})
_ROW_BY_ROW = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "bool", "astype", "clone", "copy"}
    | {"cuda", "cpu", "contiguous", "detach", "pin_memory", "numpy", "add", "sub", "mul", "div", "clamp"}
    | {"add_", "sub_", "mul_", "div_", "clamp_", "requires_grad_"}
)
_ASKS = frozenset({"dtype", "device", "ndim", "dim", "keys", "type"})
_COLUMNS = ("column", "counted", "opened")
_DRAWS = ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.multinomial", "torch.bernoulli")
_DEPTH = 3


def stacks(function: Function) -> bool:
    """Whether a collate function gives nothing but tensors with a row for each sample, which it makes of that alone.

    A list of samples is none, nor is a tensor that is padded to the longest of them.
    """
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)][function.owner is not None :]
    if not names:
        return False
    given: dict[str, _Part] = dict.fromkeys((*names[1:], *(each.arg for each in parameters.kwonlyargs)), "same")
    return _is_stacked(_given_back(function.node, {**given, names[0]: "column"}, function.script, _DEPTH))


def _is_stacked(part: _Part) -> bool:
    return all(map(_is_stacked, part)) and bool(part) if isinstance(part, tuple) else part == "stacked"


def _given_back(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, names: _Names, script: Script, depth: int
) -> _Part:
    """What a function gives back for arguments."""
    follow = _Follow(script, dict(names), depth)
    if isinstance(node, ast.Lambda):
        return follow.part(node.body)
    follow.run(node.body)
    return follow.given_back if follow.given_back is not None else "apart"


class _Follow:
    """Follows the statements of a collate function. names: what each name holds. given_back: what it returns."""

    def __init__(self, script: Script, names: dict[str, _Part], depth: int) -> None:
        self.script, self.names, self.depth = script, names, depth
        self.given_back: _Part | None = None
        self.in_turn = False  # in a loop over samples
        self.at_times = False  # where not every sample comes

    def run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.part(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AnnAssign):
            self.assign(node.target, self.part(node.value) if node.value is not None else "same")
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, self.computed([self.part(node.target), self.part(node.value)]))
        elif isinstance(node, ast.Return):
            found = self.part(node.value) if node.value is not None and not self.in_turn else "apart"
            self.given_back = found if self.given_back is None else _either(self.given_back, found)
        elif isinstance(node, ast.Expr):
            self.alone(node.value)
        elif isinstance(node, ast.For) and not node.orelse and not self.in_turn:
            self.loop(node)
        elif isinstance(node, ast.If):
            self.branches(node)
        elif not isinstance(node, ast.Pass | ast.Assert | ast.Import | ast.ImportFrom):
            self.given_back = "apart"
            self.names = dict.fromkeys(self.names, "apart")

    def assign(self, target: ast.expr, value: _Part) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = "apart" if self.in_turn and self.names.get(target.id) == "new" else value
        elif isinstance(target, ast.Tuple | ast.List):
            unpacked = value if isinstance(value, tuple) and len(value) == len(target.elts) else None
            for at, each in enumerate(target.elts):
                self.assign(each, unpacked[at] if unpacked else "first" if value in _COLUMNS else _entry(value))
        elif isinstance(target, ast.Starred):
            self.assign(target.value, "apart")
        elif isinstance(target, ast.Attribute | ast.Subscript) and (name := _root(target)):
            owner = self.part(target.value)
            if isinstance(owner, tuple) and isinstance(target.value, ast.Name) and not self.in_turn:
                self.names[name] = (*owner, value)
            elif not (owner == value == "one"):
                self.names[name] = "apart"

    def alone(self, node: ast.expr) -> None:
        """An expression that is a statement: `images.append(image)`."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        name = _root(node.func.value)
        if not name:
            return
        owner = self.names.get(name, "same")
        if node.func.attr == "sort" and owner == "column" and not self.in_turn:
            return
        each = self.part(node.args[0]) if len(node.args) == 1 else "apart"
        if node.func.attr == "append" and owner == "new" and self.in_turn and not self.at_times:
            self.names[name] = "column" if _of_one(each) else "apart"
        elif node.func.attr == "append" and (owner == "new" or isinstance(owner, tuple)) and not self.in_turn:
            self.names[name] = (each,) if owner == "new" else (*owner, each)
        elif owner not in ("same", "one"):
            self.names[name] = "apart"

    def loop(self, node: ast.For) -> None:
        over = self.part(node.iter)
        if over not in _COLUMNS:
            self.names |= {each.id: "apart" for each in ast.walk(node) if isinstance(each, ast.Name)}
            return
        self.in_turn = True  # what a name has from the sample before is not of one alone
        self.names |= {each.id: "apart" for part in node.body for each in ast.walk(part) if _is_stored(each)}
        self.assign(node.target, _entry(over))
        self.run(node.body)
        self.in_turn = False
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and self.names.get(each.id) == "one":
                self.names[each.id] = "first"

    def branches(self, node: ast.If) -> None:
        test = self.part(node.test)
        if not _of_one(test) and test != "first":
            self.given_back = "apart"
            return
        before, at_times = dict(self.names), self.at_times
        self.at_times = at_times or test == "one"
        self.run(node.body)
        after, self.names = self.names, before
        self.run(node.orelse)
        self.at_times = at_times
        self.names = {
            name: _either(self.names.get(name, "apart"), after.get(name, "apart")) for name in {*self.names, *after}
        }

    def part(self, node: ast.expr) -> _Part:
        """What an expression holds."""
        if isinstance(node, ast.Constant):
            return "same"
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "same")
        if isinstance(node, ast.Tuple | ast.List):
            if not node.elts and isinstance(node, ast.List):
                return "new"
            return tuple(self.part(each) for each in node.elts)
        if isinstance(node, ast.Dict):
            return tuple(self.part(each) for each in node.values)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.entry(node)
        if isinstance(node, ast.Attribute):
            owner = self.part(node.value)
            return owner if owner in ("same", "one", "first") else "apart"
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self.comprehension(node.generators, node.elt)
        if isinstance(node, ast.DictComp):
            found = self.comprehension(node.generators, node.value)
            return found if found == "stacked" else "apart"
        if isinstance(node, ast.IfExp):
            chosen = _either(self.part(node.body), self.part(node.orelse))
            return chosen if self.part(node.test) in ("same", "first") or _of_one(chosen) else "apart"
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.UnaryOp | ast.JoinedStr):
            return self.computed([self.part(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])
        return "apart"

    def computed(self, parts: list[_Part]) -> _Part:
        """What is computed from parts, element by element."""
        kinds = set(parts)
        if kinds <= {"same"}:
            return "same"
        if kinds <= {"same", "one"}:
            return "one"
        return "stacked" if kinds == {"stacked", "same"} else "apart"

    def entry(self, node: ast.Subscript) -> _Part:
        owner = self.part(node.value)
        at = node.slice
        if isinstance(owner, tuple):
            return owner[0] if len(set(owner)) == 1 else "apart"
        if owner in ("same", "first"):
            return owner
        if owner == "one":
            inner = [each for each in ast.walk(at) if isinstance(each, ast.Name)]
            return self.computed(["one", *(self.part(each) for each in inner)])
        if owner == "columns" and isinstance(at, ast.Constant):
            return "column"
        return "first" if owner == "column" and isinstance(at, ast.Constant) else "apart"

    def comprehension(self, generators: list[ast.comprehension], element: ast.expr) -> _Part:
        if len(generators) != 1 or generators[0].ifs or generators[0].is_async:
            return "apart"
        over = self.part(generators[0].iter)
        inner = _Follow(self.script, dict(self.names), self.depth)
        inner.assign(generators[0].target, _entry(over))
        each = inner.part(element)
        if over in _COLUMNS:
            if not _of_one(each):
                return "apart"
            return "opened" if _is_opened(element) or (over == "opened" and _is_name(element)) else "column"
        if over in ("columns", "same", "first"):
            return "columns" if each == "column" else "stacked" if _is_stacked(each) else "apart"
        return "apart"

    def call(self, node: ast.Call) -> _Part:
        name = self.script.qualified(node.func)
        if name.startswith(_DRAWS):
            return "apart"
        starred = [each for each in node.args if isinstance(each, ast.Starred)]
        if starred:
            whole = len(node.args) == 1 and name == "zip" and self.part(starred[0].value) == "column"
            return "columns" if whole else "apart"
        args = [self.part(each) for each in node.args]
        words = {word.arg: self.part(word.value) for word in node.keywords}
        first: _Part = args[0] if args else "same"
        if name in _LISTS and len(node.args) <= 1:
            return first if args else "new"
        if name in ("sorted", "reversed") and first == "column":
            return "column"
        if name == "enumerate" and args == ["column"]:
            return "counted"
        if name == "zip" and args and set(args) <= {"column", "opened"}:
            return "column"
        if name in ("isinstance", "type") and first in ("same", "first"):
            return "same"
        if name == "map" and args[1:] == ["column"]:
            return "column" if _of_one(self.made(node.args[0], ["one"], {})) else "apart"
        if name == "map" and args[1:] == ["columns"]:
            function = self.script.qualified(node.args[0])
            return "columns" if function in _LISTS else "stacked" if function in _STACKS else "apart"
        along = [*node.args[1:], *(word.value for word in node.keywords if word.arg in ("dim", "axis"))]
        if name in _STACKS and first in ("column", "stacked"):
            return "stacked" if not name.endswith("stack") or all(map(_is_zero, along)) else "apart"
        if name in _JOINS and first == "opened":
            return "stacked" if all(map(_is_zero, along)) else "apart"
        if name == "torch.nn.functional.one_hot" and first == "stacked":
            return "stacked" if len(args) > 1 or words else "apart"  # as many as the largest label, otherwise
        if isinstance(node.func, ast.Attribute) and not self.is_library(name):
            return self.method(node, node.func, [*args, *words.values()])
        return self.made(node.func, args, words)

    def is_library(self, name: str) -> bool:
        return name.partition(".")[0] in {each.partition(".")[0] for each in self.script.imported.values()}

    def method(self, node: ast.Call, function: ast.Attribute, given: list[_Part]) -> _Part:
        """What a method gives."""
        owner = self.part(function.value)
        if owner == "first":
            return "same" if function.attr in _ASKS else "apart"
        if owner == "stacked":
            keeps = function.attr in _ROW_BY_ROW or (node.args and _keeps_rows(function.attr, node.args[0]))
            return "stacked" if keeps and set(given) <= {"same", "stacked"} else "apart"
        found = self.computed([owner, *given])
        return found if found in ("same", "one") else "apart"

    def made(self, function: ast.expr, given: list[_Part], words: Mapping[str | None, _Part]) -> _Part:
        """What a function of the file makes of its arguments, or any other of what is made of one sample."""
        if isinstance(function, ast.Lambda):
            names = [each.arg for each in function.args.args]
            return _given_back(function, {**self.names, **dict(zip(names, given, strict=False))}, self.script, 0)
        if {*given, *words.values()} <= {"same", "one"}:
            return self.computed([*given, *words.values()])
        named = isinstance(function, ast.Name) and function.id
        defined = [each for each in self.script.tree.body if isinstance(each, ast.FunctionDef) and each.name == named]
        if len(defined) != 1 or not self.depth:
            return "apart"
        parameters = defined[0].args
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)]
        known: dict[str, _Part] = {**dict.fromkeys(names, "same"), **dict(zip(names, given, strict=False))}
        known |= {name: part for name, part in words.items() if name}
        return _given_back(defined[0], known, self.script, self.depth - 1) if len(given) <= len(names) else "apart"


def _either(first: _Part, second: _Part) -> _Part:
    """What is one of two parts."""
    if first == second:
        return first
    if _is_stacked(first) and _is_stacked(second):
        return "stacked"
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(_either(one, other) for one, other in zip(first, second, strict=True))
    return "one" if {first, second} == {"same", "one"} else "apart"


def _entry(part: _Part) -> _Part:
    """What a loop over a part takes, or a name to which a part is unpacked."""
    if part == "counted":
        return "apart", "one"
    if part in ("column", "opened", "one"):
        return "one"
    if part == "columns":
        return "column"
    return "same" if part in ("same", "first") else "apart"  # of the first sample: its keys


def _of_one(part: _Part) -> bool:
    """Whether something is computed from one sample alone."""
    return all(map(_of_one, part)) if isinstance(part, tuple) else part in ("same", "one")


def _is_opened(node: ast.expr) -> bool:
    """`x.unsqueeze(0)`, `x[None]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "unsqueeze" and len(node.args) == 1 and _is_zero(node.args[0])
    if not isinstance(node, ast.Subscript):
        return False
    at = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return isinstance(at, ast.Constant) and at.value is None


def _keeps_rows(method: str, dimension: ast.expr) -> bool:
    """Whether a method that is given a dimension leaves the first one where it is."""
    if method == "permute":
        return _is_zero(dimension)
    if method == "unsqueeze" and ast.unparse(dimension) == "-1":
        return True
    return method in ("unsqueeze", "squeeze") and isinstance(dimension, ast.Constant) and not _is_zero(dimension)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _root(node: ast.expr) -> str:
    """The name that an expression begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
