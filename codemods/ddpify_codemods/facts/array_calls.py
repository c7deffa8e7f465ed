"""How many dimensions arrays have that calls give: of numpy, torch and others, and of functions of the file."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from .array_functions import (
    AMONG,
    COPIES,
    EACH,
    LIBRARIES,
    LINES,
    MADE,
    MEET,
    NUMBERS,
    OF_GENERATORS,
    OF_SIZES,
    REDUCE,
    SAME,
    SIZE_LAST,
    TABLES,
)
from .origins import sources
from .script import Script

# A tuple for several arrays, by their places.
Dimensions: TypeAlias = "int | tuple[Dimensions, ...] | None"


class ArrayCalls(ABC):
    """Those of calls; of the expressions in them, what is derived from this says."""

    script: Script

    @abstractmethod
    def of(self, node: ast.expr | None, depth: int) -> Dimensions:
        """The dimensions of what an expression gives."""

    @abstractmethod
    def number(self, node: ast.expr | None, depth: int) -> int | None:
        """The same of one array."""

    @abstractmethod
    def product(self, left: ast.expr, right: ast.expr, depth: int) -> int | None:
        """The dimensions of a product of matrices or vectors."""

    def of_call(self, node: ast.Call, depth: int) -> Dimensions:
        qualified = self.script.qualified(node.func)
        last = qualified.rpartition(".")[2] if qualified else ""
        last = node.func.attr if isinstance(node.func, ast.Attribute) else last
        words = {word.arg: word.value for word in node.keywords}
        if None in words or any(isinstance(each, ast.Starred) for each in node.args):
            return None
        of_library = qualified.startswith(LIBRARIES) or (isinstance(node.func, ast.Name) and last in NUMBERS)
        if not of_library and isinstance(node.func, ast.Attribute):
            return self.of_method(last, node.func.value, node.args, words, depth)
        if not of_library:
            results = _returned(self.script, node)
            if any(isinstance(each, ast.Tuple) for each in results):
                each_of = [
                    tuple(self.of(part, depth) for part in each.elts) for each in results if isinstance(each, ast.Tuple)
                ]
                return alike(list(each_of)) if len(each_of) == len(results) else None
            if qualified in ("list", "tuple") and len(node.args) == 1:
                return self.of(node.args[0], depth)
            return alike([self.of(each, depth) for each in results])
        return self.of_function(qualified, last, node, words, depth)

    def of_function(
        self, qualified: str, last: str, node: ast.Call, words: dict[str | None, ast.expr], depth: int
    ) -> Dimensions:
        """The dimensions of what a function of a library gives."""
        args = node.args
        if qualified.startswith("pandas."):
            return 2 if last in TABLES else None
        if qualified.startswith("sklearn."):
            if last == "train_test_split":
                return tuple(each for arg in args for each in [self.of(arg, depth)] * 2)
            of_both = last.startswith(MADE) or (last.startswith(("load_", "fetch_")) and "return_X_y" in words)
            return (2, 1) if of_both and "n_targets" not in words and last != "load_linnerud" else None
        if qualified.startswith(("math.", "random.")) or (last in NUMBERS and isinstance(node.func, ast.Name)):
            return 0 if last not in ("sample", "choices", "shuffle", "choice") else None
        size = words.get("size")
        if size is not None or last in OF_SIZES:
            sizes = [size] if size is not None else args
            return self.of_sizes(sizes, depth)
        if last in SIZE_LAST:
            return self.of_sizes(args[-1:], depth) if args and isinstance(args[-1], ast.Tuple | ast.List) else None
        if last in LINES:
            return 1
        if last in ("full", "eye"):
            return 2 if last == "eye" else self.of_sizes(args[:1], depth)
        if not args:
            return None
        if last in ("FloatTensor", "LongTensor", "Tensor") and not isinstance(args[0], ast.List | ast.ListComp):
            dimensions = self.number(args[0], depth)
            return dimensions if dimensions and len(args) == 1 else None
        if last in COPIES:
            return self.of(args[0], depth)
        if last in MEET and len(args) > 1:
            return most([self.number(each, depth) for each in args])
        if last in ("matmul", "mm", "dot") and len(args) == 2:
            return self.product(args[0], args[1], depth)
        if last in ("cat", "concatenate", "concat", "stack", "column_stack", "vstack", "hstack"):
            return self.joined(last, args[0], depth)
        if last == "one_hot":
            dimensions = self.number(args[0], depth)
            return None if dimensions is None else dimensions + 1
        return self.of_method(last, args[0], args[1:], words, depth)

    def joined(self, name: str, parts: ast.expr, depth: int) -> int | None:
        """The dimensions of arrays that are put together."""
        if name == "column_stack":
            return 2
        dimensions = self.number(parts, depth)
        if isinstance(parts, ast.List | ast.Tuple) and dimensions is None:
            known = {self.number(each, depth) for each in parts.elts} - {None}
            dimensions = known.pop() + 1 if len(known) == 1 else None  # type: ignore[operator]
        if dimensions is None or (name in ("vstack", "hstack") and dimensions < 3):
            return None
        return dimensions if name == "stack" else dimensions - 1

    def of_sizes(self, sizes: Sequence[ast.expr], depth: int) -> int | None:
        """The dimensions of an array of some sizes, or of those in a tuple."""
        if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
            return len(sizes[0].elts) if not any(isinstance(each, ast.Starred) for each in sizes[0].elts) else None
        if len(sizes) == 1 and (owner := _sized(sizes[0])) is not None:
            return self.number(owner, depth)
        if len(sizes) == 1:
            operator = sizes[0].op if isinstance(sizes[0], ast.BinOp) else None
            return 1 if self.of(sizes[0], depth) == 0 or isinstance(operator, ast.FloorDiv | ast.Sub) else None
        return len(sizes) or None

    def of_method(
        self, last: str, owner: ast.expr, args: Sequence[ast.expr], words: dict[str | None, ast.expr], depth: int
    ) -> Dimensions:
        """The dimensions of what a method gives, or a function of what it is given first."""
        if last in NUMBERS and last == "item":
            return 0
        if last in ("view", "reshape"):
            return self.of_sizes(args, depth)
        if last in OF_GENERATORS or (last in SIZE_LAST and "size" in words):
            return self.of_sizes([words["size"]] if "size" in words else args, depth)
        if last in ("flatten", "ravel"):
            start = ast.unparse(args[0]) if args else ""
            return 1 if not args else 2 if start == "1" else None
        if last == "tolist":
            return self.of(owner, depth)
        dimensions = self.number(owner, depth)
        if last == "fit_transform":
            return 2
        if last == "transform":  # of a scaler; a transform of a data set makes what it likes
            made = sources(self.script, owner) if isinstance(owner, ast.Name) else []
            scales = [isinstance(each, ast.Call) and _is_of_sklearn(self.script, each) for each in made]
            return self.number(args[0], depth) if len(args) == 1 and scales and all(scales) else None
        if dimensions is None:
            return None
        dims = [words[word] for word in ("dim", "axis") if word in words] or [*args[:1]]
        if last == "unsqueeze" or last == "expand_dims":
            return dimensions + 1
        if last == "squeeze":
            return dimensions - 1 if dims else None
        if last in REDUCE or last in AMONG:
            keeps = "keepdim" in words or "keepdims" in words or len(args) > 1
            if not dims:
                return 0
            return dimensions - 1 if not keeps and last in REDUCE and _is_number(dims[0]) else None
        if last in SAME or last in EACH:
            return dimensions
        return most([dimensions, *(self.number(each, depth) for each in args)]) if last in MEET else None


def _sized(node: ast.expr) -> ast.expr | None:
    """The array whose sizes are given: z of `z.shape`, `z.size()`; None for others."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return None if node.args or node.keywords else node.func.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def _is_of_sklearn(script: Script, call: ast.Call) -> bool:
    return script.qualified(call.func).startswith("sklearn.")


def _returned(script: Script, call: ast.Call) -> list[ast.expr]:
    """What a function of the file returns that a call calls."""
    if not isinstance(call.func, ast.Name):
        return []
    functions = [each for each in script.find(ast.FunctionDef) if each.name == call.func.id]
    if len(functions) != 1 or functions[0] in script.generators:
        return []
    inner = [each for each in ast.walk(functions[0]) if isinstance(each, ast.Return)]
    return [each.value for each in inner if each.value is not None and script.scope(each) is functions[0]]


def _is_number(node: ast.expr) -> bool:
    """Whether a whole number is written down."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def most(several: Sequence[int | None]) -> int | None:
    """The dimensions of what is made of arrays element by element."""
    return None if None in several or not several else max(each for each in several if each is not None)


def alike(several: Sequence[Dimensions]) -> Dimensions:
    """The dimensions of what is one of several."""
    return several[0] if several and all(each == several[0] for each in several) else None
