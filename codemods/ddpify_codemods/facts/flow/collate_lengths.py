"""What a collate function computes with how long the longest of its samples is."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..script import Script
from .collate_parts import JOINS, STACKS, Part, Unclear, is_zero, of_one, unclear
from .lengthened import (
    FILLED,
    FULL_OF,
    Behind,
    Lengthened,
    Missing,
    is_measured_there,
    measured,
    padded_dimension,
    takes_largest,
)
from .padding import Padded
from .said_there import binder_of, in_words_of
from .values import Function


class CollateLengths:
    """Follows expressions that make samples as long as the longest.

    function: what is followed. outer: the collate function that calls it, or itself. descending: whether the first
    sample is the longest, by whatever the samples are sorted.
    """

    function: Function
    outer: Function
    script: Script
    names: dict[str, Part]
    local: set[str]
    codes: dict[str, ast.expr]
    descending = False

    def part(self, node: ast.expr) -> Part:
        """What an expression holds."""
        raise NotImplementedError

    def said(self, node: ast.expr) -> str:
        """The code of what is put behind samples, in the words of the collate function."""
        code = self.code_of(node)
        several = isinstance(code, ast.List | ast.Tuple | ast.ListComp | ast.BinOp)
        return unclear() if code is None or several or self.part(node) != "same" else ast.unparse(code)

    def code_of(self, node: ast.expr) -> ast.expr | None:
        """An expression in the words of the collate function; None where that has none for it."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - self.codes.keys()
        if names & (self.local | self.names.keys()):
            return None
        binders = [[binder_of(self.script, each.node, name) for each in (self.function, self.outer)] for name in names]
        alike = self.function is self.outer or all(one is other for one, other in binders)
        return in_words_of(node, self.codes) if alike else None

    def number(self, node: ast.BinOp, left: Part, right: Part) -> Part | None:
        """What is computed with how long the longest sample is; None for others."""
        is_longest = left == "longest" or (left == "first" and self.descending)
        if isinstance(node.op, ast.Add) and of_one(left) and isinstance(right, Behind):
            return Lengthened(right.value)
        if isinstance(node.op, ast.Sub) and is_longest and right == "one":
            return Missing(measured(node.right) if left == "longest" else None)
        if isinstance(node.op, ast.Add) and left == "longest" and _is_count(node.right):
            return "longest"
        for listed, times in ((node.left, right), (node.right, left)):
            if isinstance(node.op, ast.Mult) and isinstance(listed, ast.List) and isinstance(times, Missing):
                return Behind(self.said(listed.elts[0])) if len(listed.elts) == 1 else unclear()
        return None

    def lengthened(self, name: str, node: ast.Call, args: list[Part], words: Mapping[str, Part]) -> Part | None:
        """What functions make of how long the longest sample is, or of samples as long; None for others."""
        first: Part = args[0] if args else "new"
        given = {word.arg: word.value for word in node.keywords}
        if takes_largest(name) and args == ["column"] and {*words} <= {"default"}:
            return "longest"
        if name in ("max", "min", "int") and "longest" in args and {*args} <= {"same", "longest"} and not words:
            return "longest"
        if name == "max" and any(isinstance(each, Missing) for each in args) and not words:
            zeros = all(isinstance(each, Missing) or is_zero(part) for each, part in zip(args, node.args, strict=True))
            return next(each for each in args if isinstance(each, Missing)) if zeros else unclear()
        if name == "len" and first in ("first", "column", "unordered") and not words:
            return "first" if first == "first" else "count"
        if name in (*FULL_OF, *FILLED) and (isinstance(first, Missing) or _is_missing(first)):
            inner = first[0] if isinstance(first, tuple) else first
            sizes = [*(first if isinstance(first, tuple) else args[: 1 if name in FILLED else len(args)])][1:]
            if not isinstance(inner, Missing) or not all(map(of_one, sizes)):
                raise Unclear
            filled = [*node.args[1:2], given.get("fill_value")][0]
            if name in FILLED:
                return Behind(self.said(filled)) if filled is not None else unclear()
            return Behind(FULL_OF[name])
        if name in JOINS and isinstance(first, tuple) and first and isinstance(first[-1], Behind):
            along = [*node.args[1:], *(word.value for word in node.keywords)]
            apart = all(map(of_one, first[:-1])) and all(map(is_zero, along))
            return Lengthened(first[-1].value, first[-1].dimension) if apart else unclear()
        if name in ("torch.nn.functional.pad", "numpy.pad") and of_one(first) and len(node.args) > 1:
            return self.padded_sample(name, node, args)
        if isinstance(first, Lengthened) and name in STACKS and {*args[1:]} | {*words.values()} <= {"same"}:
            along = [*node.args[1:], *(word.value for word in node.keywords if word.arg in ("dim", "axis"))]
            if not first.of_all:
                return unclear() if name.endswith("stack") else first
            stacked = not name.endswith("stack") or all(map(is_zero, along))
            return Padded(first.dimension + 1, first.value) if stacked else unclear()
        if isinstance(first, Padded) and name in STACKS and not name.endswith("stack"):
            return first if {*args[1:]} | {*words.values()} <= {"same"} else unclear()
        return None

    def padded_sample(self, name: str, node: ast.Call, args: list[Part]) -> Part | None:
        """`F.pad(x, (0, longest - len(x)), value=PAD)`, `np.pad(x, (0, longest - len(x)))`; None for others."""
        sizes, given = node.args[1], {word.arg: word.value for word in node.keywords}
        if of_one(args[1]) or not isinstance(sizes, ast.Tuple | ast.List):
            return None  # to a length that is the same for all
        if name == "numpy.pad" and isinstance(sizes.elts[0], ast.Tuple | ast.List):  # ((0, longest - len(x)), (0, 0))
            others = all(ast.unparse(each) in ("(0, 0)", "[0, 0]") for each in sizes.elts[1:])
            sizes = sizes.elts[0] if others else unclear()
        elif name == "numpy.pad" and len(sizes.elts) != 2:
            raise Unclear
        dimension = padded_dimension(sizes, [self.part(each) for each in sizes.elts])
        words = {"mode", "value"} if name != "numpy.pad" else {"mode", "constant_values"}
        mode = [*node.args[2:3], *([given["mode"]] if "mode" in given else [])]
        if dimension is None or not {*given} <= words or any(ast.unparse(each) != "'constant'" for each in mode):
            raise Unclear
        if dimension if name == "numpy.pad" else not is_measured_there(self.script, node, sizes.elts[-1]):
            raise Unclear
        value = given.get("value", given.get("constant_values", [*node.args[3:4], ast.Constant(0)][0]))
        return Lengthened(self.said(value), dimension)


def _is_missing(part: Part) -> bool:
    return isinstance(part, tuple) and bool(part) and isinstance(part[0], Missing)


def _is_count(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 0
