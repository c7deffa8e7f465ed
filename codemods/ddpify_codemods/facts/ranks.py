"""How many dimensions an array or tensor has that the script makes, where that is seen in its text.

Rank is the word of numpy's manual: 0 for a number, 1 for `torch.rand(n)`, 2 for `torch.rand(n, 3)`; None where it is
not seen. What names are given is taken from the last assignment that stands before them and surely ran.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias, TypeGuard

from .origins import passed, sources
from .script import KEPT, Script

# A tuple for several arrays, by their places.
Rank: TypeAlias = "int | tuple[Rank, ...] | None"

_DEPTH = 24
_OF_SIZES = frozenset({"rand", "randn", "zeros", "ones", "empty", "random_sample", "standard_normal", "random"})
_SIZE_LAST = frozenset({"randint", "normal", "uniform", "choice", "exponential", "poisson", "binomial", "laplace"})
_OF_GENERATORS = frozenset({"rand", "randn", "standard_normal", "random_sample"})  # `RandomState(0).randn(n, 3)`
_LINES = frozenset({"linspace", "arange", "logspace", "randperm", "permutation", "bincount", "geomspace"})
_COPIES = frozenset(
    {"tensor", "as_tensor", "array", "asarray", "from_numpy", "FloatTensor", "LongTensor", "DoubleTensor", "Variable"}
    | {"ascontiguousarray", "Tensor", "IntTensor", "Parameter", "list", "tuple", "float32", "float64", "deepcopy"}
)
_NUMBERS = frozenset({"float", "int", "len", "bool", "round", "item"})
# They make something for each element.
_EACH = frozenset(
    {"sin", "cos", "tan", "exp", "log", "log1p", "sqrt", "abs", "sign", "tanh", "sigmoid", "relu", "square", "floor"}
    | {
        "float",
        "double",
        "long",
        "int",
        "half",
        "to",
        "cuda",
        "cpu",
        "numpy",
        "clone",
        "detach",
        "contiguous",
        "astype",
    }
    | {"copy", "clip", "clamp", "zeros_like", "ones_like", "rand_like", "randn_like", "pow", "requires_grad_", "bool"}
    | {"type", "fillna", "cumsum", "softmax", "bernoulli", "round", "neg", "nan_to_num", "sort_values", "reset_index"}
    | {
        "shuffle",
        "roll",
        "flip",
        "normalize",
        "logical_not",
        "normal_",
        "uniform_",
        "fill_",
        "sample",
        "head",
        "dropna",
    }
)
_MEET = frozenset({"add", "sub", "mul", "div", "maximum", "minimum", "where", "pow", "atan2", "eq", "gt", "lt", "ge"})
_REDUCE = frozenset({"sum", "mean", "std", "var", "prod", "norm", "all", "any", "argmax", "argmin", "logsumexp"})
_AMONG = frozenset({"max", "min", "median"})  # along a dimension, torch gives two of them
_SAME = frozenset({"transpose", "permute", "t", "T", "values", "data", "to_numpy", "fit_transform", "real", "swapaxes"})
_MADE = ("make_regression", "make_classification", "make_moons", "make_circles", "make_blobs", "make_friedman")
_LIBRARIES = ("torch.", "numpy.", "sklearn.", "math.", "random.", "scipy.")


class Ranks:
    """Ranks of the expressions of a file.

    known: those of names that are something else than what is assigned to them, as the index of `__getitem__`.
    """

    def __init__(self, script: Script, known: dict[tuple[ast.AST, str], Rank] | None = None) -> None:
        self.script = script
        self.known = known or {}
        self.left = 2000  # how much is looked at
        self.open: set[ast.expr] = set()

    def of(self, node: ast.expr | None, depth: int = _DEPTH) -> Rank:
        """The rank of what an expression gives."""
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

    def _of(self, node: ast.expr, depth: int) -> Rank:
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
            return _most([self.number(node.left, depth), self.number(node.right, depth)])
        if isinstance(node, ast.Compare):
            return _most([self.number(each, depth) for each in (node.left, *node.comparators)])
        if isinstance(node, ast.List | ast.Tuple):
            inner = [self.number(each, depth) for each in node.elts[:3]]
            return inner[0] + 1 if inner and inner[0] is not None and len({*inner}) == 1 else None
        if isinstance(node, ast.ListComp):
            inner_rank = self.number(node.elt, depth)
            return None if inner_rank is None else inner_rank + 1
        if isinstance(node, ast.IfExp):
            return _alike([self.of(node.body, depth), self.of(node.orelse, depth)])
        if isinstance(node, ast.Subscript):
            return self.of_subscript(node, depth)
        return self.of_call(node, depth) if isinstance(node, ast.Call) else None

    def product(self, left: ast.expr, right: ast.expr, depth: int) -> int | None:
        """The rank of a product of matrices or vectors."""
        first, second = self.number(left, depth), self.number(right, depth)
        if first is None or second is None or not first or not second or max(first, second) > 2:
            return None
        return first + second - 2

    def of_name(self, node: ast.Name, depth: int) -> Rank:
        scope = self.script.scope(node)
        if (scope, node.id) in self.known:
            return self.known[scope, node.id]
        stores = _stores(self.script, scope, node.id)
        if not stores and isinstance(scope, ast.FunctionDef):
            parameter = next((each for each in ast.walk(scope.args) if _is_parameter(each, node.id)), None)
            if parameter is not None:
                return self.of_parameter(scope, parameter, depth)
            stores = _stores(self.script, self.script.tree, node.id)
            return _alike([self.given(each, depth) for each in stores]) if len(stores) < 4 else None
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
            return _alike([self.given(each, depth) for each in stores]) if len(stores) < 4 else None
        return self.given(last, depth)

    def of_parameter(self, function: ast.FunctionDef, parameter: ast.arg, depth: int) -> Rank:
        """The rank of what the callers in the file hand over, or the function takes without."""
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
        return _alike([self.of(each, depth) for each in given])

    def of_comprehension(self, node: ast.Name, depth: int) -> Rank:
        """The rank of the variable of a comprehension: one less than that of what it runs over."""
        for each in self.script.ancestors(node):
            for part in each.generators if isinstance(each, ast.ListComp | ast.GeneratorExp) else ():
                if isinstance(part.target, ast.Name) and part.target.id == node.id:
                    if isinstance(part.iter, ast.Call) and ast.unparse(part.iter.func) == "range":
                        return 0
                    over = self.number(part.iter, depth)
                    return over - 1 if over else None
        return None

    def given(self, name: ast.Name, depth: int) -> Rank:
        """The rank of what a statement gives to a name."""
        statement = self.script.statement(name)
        if isinstance(statement, ast.For):
            return 0 if statement.target is name and ast.unparse(statement.iter).startswith("range(") else None
        if isinstance(statement, ast.AnnAssign):
            return self.of(statement.value, depth)
        if isinstance(statement, ast.AugAssign):
            earlier = _stores(self.script, self.script.scope(name), name.id)
            before = [each for each in earlier if (each.lineno, each.col_offset) < (name.lineno, name.col_offset)]
            return self.given(before[-1], depth - 1) if before and depth > 0 else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        return self.placed(statement.targets[0], name, statement.value, depth)

    def placed(self, target: ast.expr, name: ast.expr, value: ast.expr, depth: int) -> Rank:
        """The rank of what a part of a target gets of a value."""
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

    def of_attribute(self, node: ast.Attribute, depth: int) -> Rank:
        if node.attr in _SAME:
            return self.of(node.value, depth)
        if node.attr in ("iloc", "loc"):
            return self.of(node.value, depth)
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return None
        cls = next((each for each in self.script.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        found: list[Rank] = []
        for each in ast.walk(cls) if cls is not None else ():
            if isinstance(each, ast.Assign) and len(each.targets) == 1:
                for part in ast.walk(each.targets[0]):
                    if isinstance(part, ast.Attribute) and ast.unparse(part) == ast.unparse(node):
                        parent = self.script.parents[part]
                        own = isinstance(parent, ast.Assign | ast.Tuple)  # not `self.x[0] = …`
                        found += [self.placed(each.targets[0], part, each.value, depth)] if own else []
            elif isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == ast.unparse(node):
                found.append(self.of(each.value, depth))
        return _alike(found)

    def of_subscript(self, node: ast.Subscript, depth: int) -> Rank:
        owner = self.of(node.value, depth)
        if isinstance(owner, tuple):
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return owner[at] if isinstance(at, int) and -len(owner) <= at < len(owner) else None
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

    def of_call(self, node: ast.Call, depth: int) -> Rank:
        qualified = self.script.qualified(node.func)
        last = qualified.rpartition(".")[2] if qualified else ""
        last = node.func.attr if isinstance(node.func, ast.Attribute) else last
        words = {word.arg: word.value for word in node.keywords}
        if None in words or any(isinstance(each, ast.Starred) for each in node.args):
            return None
        of_library = qualified.startswith(_LIBRARIES) or (isinstance(node.func, ast.Name) and last in _NUMBERS)
        if not of_library and isinstance(node.func, ast.Attribute):
            return self.of_method(last, node.func.value, node.args, words, depth)
        if not of_library:
            results = _returned(self.script, node)
            if any(isinstance(each, ast.Tuple) for each in results):
                each_of = [
                    tuple(self.of(part, depth) for part in each.elts) for each in results if isinstance(each, ast.Tuple)
                ]
                return _alike(list(each_of)) if len(each_of) == len(results) else None
            if qualified in ("list", "tuple") and len(node.args) == 1:
                return self.of(node.args[0], depth)
            return _alike([self.of(each, depth) for each in results])
        return self.of_function(qualified, last, node, words, depth)

    def of_function(
        self, qualified: str, last: str, node: ast.Call, words: dict[str | None, ast.expr], depth: int
    ) -> Rank:
        """The rank of what a function of a library gives."""
        args = node.args
        if qualified.startswith("sklearn."):
            if last == "train_test_split":
                return tuple(each for arg in args for each in [self.of(arg, depth)] * 2)
            of_both = last.startswith(_MADE) or (last.startswith(("load_", "fetch_")) and "return_X_y" in words)
            return (2, 1) if of_both and "n_targets" not in words and last != "load_linnerud" else None
        if qualified.startswith(("math.", "random.")) or (last in _NUMBERS and isinstance(node.func, ast.Name)):
            return 0 if last not in ("sample", "choices", "shuffle", "choice") else None
        size = words.get("size")
        if size is not None or last in _OF_SIZES:
            sizes = [size] if size is not None else args
            return self.of_sizes(sizes, depth)
        if last in _SIZE_LAST:
            return self.of_sizes(args[-1:], depth) if args and isinstance(args[-1], ast.Tuple | ast.List) else None
        if last in _LINES:
            return 1
        if last in ("full", "eye"):
            return 2 if last == "eye" else self.of_sizes(args[:1], depth)
        if not args:
            return None
        if last in ("FloatTensor", "LongTensor", "Tensor") and not isinstance(args[0], ast.List | ast.ListComp):
            rank = self.number(args[0], depth)
            return rank if rank and len(args) == 1 else None
        if last in _COPIES:
            return self.of(args[0], depth)
        if last in _MEET and len(args) > 1:
            return _most([self.number(each, depth) for each in args])
        if last in ("matmul", "mm", "dot") and len(args) == 2:
            return self.product(args[0], args[1], depth)
        if last in ("cat", "concatenate", "concat", "stack", "column_stack", "vstack", "hstack"):
            return self.joined(last, args[0], depth)
        if last == "one_hot":
            rank = self.number(args[0], depth)
            return None if rank is None else rank + 1
        return self.of_method(last, args[0], args[1:], words, depth)

    def joined(self, name: str, parts: ast.expr, depth: int) -> int | None:
        """The rank of arrays that are put together."""
        if name == "column_stack":
            return 2
        rank = self.number(parts, depth)
        if isinstance(parts, ast.List | ast.Tuple) and rank is None:
            known = {self.number(each, depth) for each in parts.elts} - {None}
            rank = known.pop() + 1 if len(known) == 1 else None  # type: ignore[operator]
        if rank is None or (name in ("vstack", "hstack") and rank < 3):
            return None
        return rank if name == "stack" else rank - 1

    def of_sizes(self, sizes: Sequence[ast.expr], depth: int) -> int | None:
        """The rank of an array of some sizes, or of those in a tuple."""
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
    ) -> Rank:
        """The rank of what a method gives, or a function of what it is given first."""
        if last in _NUMBERS and last == "item":
            return 0
        if last in ("view", "reshape"):
            return self.of_sizes(args, depth)
        if last in _OF_GENERATORS or (last in _SIZE_LAST and "size" in words):
            return self.of_sizes([words["size"]] if "size" in words else args, depth)
        if last in ("flatten", "ravel"):
            start = ast.unparse(args[0]) if args else ""
            return 1 if not args else 2 if start == "1" else None
        if last == "tolist":
            return self.of(owner, depth)
        rank = self.number(owner, depth)
        if last == "fit_transform":
            return 2
        if last == "transform":  # of a scaler; a transform of a data set makes what it likes
            made = sources(self.script, owner) if isinstance(owner, ast.Name) else []
            scales = [isinstance(each, ast.Call) and _is_of_sklearn(self.script, each) for each in made]
            return self.number(args[0], depth) if len(args) == 1 and scales and all(scales) else None
        if rank is None:
            return None
        dims = [words[word] for word in ("dim", "axis") if word in words] or [*args[:1]]
        if last == "unsqueeze" or last == "expand_dims":
            return rank + 1
        if last == "squeeze":
            return rank - 1 if dims else None
        if last in _REDUCE or last in _AMONG:
            keeps = "keepdim" in words or "keepdims" in words or len(args) > 1
            if not dims:
                return 0
            return rank - 1 if not keeps and last in _REDUCE and _is_number(dims[0]) else None
        if last in _SAME or last in _EACH:
            return rank
        return _most([rank, *(self.number(each, depth) for each in args)]) if last in _MEET else None


def _sized(node: ast.expr) -> ast.expr | None:
    """The array whose sizes are given: z of `z.shape`, `z.size()`; None for others."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return None if node.args or node.keywords else node.func.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def _is_of_sklearn(script: Script, call: ast.Call) -> bool:
    return script.qualified(call.func).startswith("sklearn.")


def _is_parameter(node: ast.AST, name: str) -> TypeGuard[ast.arg]:
    return isinstance(node, ast.arg) and node.arg == name


def _stores(script: Script, scope: ast.AST, name: str) -> list[ast.Name]:
    """Where a function, or the file outside of functions, gives a name a value, in order."""
    return _all_stores(script).get((scope, name), [])


@lru_cache(maxsize=KEPT)
def _all_stores(script: Script) -> dict[tuple[ast.AST, str], list[ast.Name]]:
    """The same for all names of a file, by the function that they are in."""
    found: dict[tuple[ast.AST, str], list[ast.Name]] = {}
    names = (each for each in script.find(ast.Name) if isinstance(each.ctx, ast.Store))
    for each in sorted(names, key=lambda each: (each.lineno, each.col_offset)):
        found.setdefault((script.scope(each), each.id), []).append(each)
    return found


def _returned(script: Script, call: ast.Call) -> list[ast.expr]:
    """What a function of the file returns that a call calls."""
    if not isinstance(call.func, ast.Name):
        return []
    functions = [each for each in script.find(ast.FunctionDef) if each.name == call.func.id]
    if len(functions) != 1 or functions[0] in script.generators:
        return []
    inner = [each for each in ast.walk(functions[0]) if isinstance(each, ast.Return)]
    return [each.value for each in inner if each.value is not None and script.scope(each) is functions[0]]


def _ends(node: ast.AST) -> tuple[int, int]:
    """Where a statement ends that gives a value; a compound one gives it where it begins."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _is_number(node: ast.expr) -> bool:
    """Whether a whole number is written down."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _most(ranks: Sequence[int | None]) -> int | None:
    """The rank of what is made of arrays element by element."""
    return None if None in ranks or not ranks else max(each for each in ranks if each is not None)


def _alike(ranks: Sequence[Rank]) -> Rank:
    """The rank of what is one of several."""
    return ranks[0] if ranks and all(each == ranks[0] for each in ranks) else None
