"""Follows comparisons: of samples, of numbers that all ranks have to agree on, of the size of a batch."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..called_modules import last_name
from .dimensions import after_arithmetic, at_least_after, of_dimensions
from .frames import Frame
from .layout import differ, together
from .meetings import meeting
from .own_decisions import is_drawn
from .own_sizes import batch_sizes
from .reading import Reading
from .texts import is_part
from .values import COUPLES, LOCAL_ROWS, SAME, Items, Value, made_of


class Comparisons(Reading):
    """What comparisons hold."""

    def on_compare(self, node: ast.Compare, frame: Frame) -> Value:
        sides = [node.left, *node.comparators]
        values = [self.value(side, frame) for side in sides]
        local = [value for value in values if value.is_local]
        if not local:
            self.found.read_same.update(sides)
        known = self.compared(node, values, frame)
        if not local or known is not None:
            return known or SAME
        if all(value.kind in LOCAL_ROWS for value in local):
            kinds = {value.kind for value in local}
            coupled = (
                COUPLES if differ(kinds) or self.meets_others(values) else meeting(frame.script, sides[:2], values[:2])
            )
            if coupled:  # y[:, None] == y[None]: of each two samples
                return self.noted_join(made_of("unknown", local, reason=coupled), node, SAME, values)
            kind = together(kinds) if len(kinds) > 1 else local[0].kind
            made = made_of(kind, local, host=all(value.host for value in local))
            return of_dimensions(made, after_arithmetic(*values) if len(values) == 2 else None, at_least_after(values))
        if all(map(is_drawn, local)) and not self.in_forward:
            return made_of("unknown", local, host=all(value.host for value in local))
        tensors = [value for value in local if value.kind == "unknown" and not value.host]
        tensors += [value for value in local if value.host and self.in_forward and is_drawn(value)]
        for side, value in zip(sides, values, strict=True):
            if value in tensors:
                continue  # what is decided by it is seen where it is used: `(x.norm() > 1).float()` decides nothing
            if value.kind == "size" and not self.in_forward:
                if self.is_full_batch(node, value, frame):
                    return SAME
                reason = "the size of a batch decides, and ranks round down a batch size that they do not divide"
                self.problem(frame, node, reason, value.loaders)
                return SAME
            self.demand(side, value, frame)
        return made_of("unknown", tensors) if tensors else SAME

    def is_full_batch(self, node: ast.Compare, size: Value, frame: Frame) -> bool:
        """Whether a batch of training, of which all ranks have as many samples, is full: `len(x) == batch_size`."""
        loaders = size.loaders
        if len(node.comparators) != 1 or not loaders or any(self.status.get(each) != "training" for each in loaders):
            return False
        for side in (node.left, node.comparators[0]):
            if isinstance(side, ast.Constant) and side.value == 0:
                return True
            sizes = {ast.unparse(given) for each in loaders for given in batch_sizes(each)}
            written = isinstance(side, ast.Name | ast.Attribute | ast.Constant)
            if written and sizes == {ast.unparse(side)} and all(each.script is frame.script for each in loaders):
                self.found.full_batches[side] = frame.script
                return True
        return False

    def compared(self, node: ast.Compare, values: list[Value], frame: Frame) -> Value | None:
        """What is known without the numbers that are compared: whether there are any, or which text it is."""
        equals = isinstance(node.ops[0], ast.Is | ast.Eq)
        if len(values) == 2 and (isinstance(node.ops[0], ast.Is | ast.IsNot) or self.is_test(node, values, frame)):
            first, second = values
            if second.is_none and isinstance(node.comparators[0], ast.Constant):
                known = first.is_none or (first.is_none is False and (bool(first.things) or first.is_local))
                if not known and is_drawn(first):
                    return replace(first, host=True, is_none=False)
                return Value(constant=first.is_none is equals) if known else SAME
        if len(values) == 2 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            if len({value.loaders for value in values}) == 1 and _are_of_a_batch(node, values):
                return SAME
            left, right = (node.left, values[0]), (node.comparators[0], values[1])
            if self.are_sizes(left, right, frame) or self.are_sizes(right, left, frame):
                return SAME
            one, other = (value.constant for value in values)
            if any(isinstance(one, kind) and isinstance(other, kind) for kind in (str, bool)):
                return Value(constant=(one == other) == isinstance(node.ops[0], ast.Eq))
        if len(values) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
            texts = _texts(node.comparators[0]) or _texts_given(node.comparators[0], frame)
            if isinstance(values[0].constant, str) and texts:
                return Value(constant=(values[0].constant in texts) is isinstance(node.ops[0], ast.In))
        return is_part(node, values)

    def are_sizes(self, shape: tuple[ast.expr, Value], sizes: tuple[ast.expr, Value], frame: Frame) -> bool:
        """Whether the sizes of a rank's part of a batch are compared with such sizes, `x.size() != (len(x), steps)`, so
        that the answer is the same on all ranks."""
        (asked, value), (node, given) = shape, sizes
        if not value.is_local or given.is_local or len(given.things) != 1 or not given.only(Items):
            return False
        if isinstance(asked, ast.Call) and ast.unparse(asked.func) in ("list", "tuple") and len(asked.args) == 1:
            value = self.value(asked.args[0], frame)
        parts = [self.value(each, frame) for each in node.elts] if isinstance(node, ast.Tuple | ast.List) else []
        parts = parts or [part for thing in given.things if isinstance(thing, Items) for part in thing.all()]
        kinds, loaders = {each.kind for each in parts}, {each.loaders for each in parts if each.is_local}
        return value.kind == "shape" and "size" in kinds and kinds <= {"size", "same"} and loaders == {value.loaders}

    def is_test(self, node: ast.Compare, values: list[Value], frame: Frame) -> bool:
        """Whether a branch asks `mask != None` of a tensor, which says what `is not` says; an array of numpy compares
        each of its numbers, and an object may compare as it likes."""
        parent = frame.script.parents[node]
        tests = isinstance(parent, ast.If | ast.IfExp) and parent.test is node
        own = values[0].things or values[0].host
        return tests and isinstance(node.ops[0], ast.Eq | ast.NotEq) and not own


def _texts(node: ast.expr) -> set[str]:
    """The texts in a list that is written out, `["vae", "cnn"]`; empty where there are others."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
    found = {each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return found if len(found) == len(parts) else set()


def _texts_given(node: ast.expr, frame: Frame) -> set[str]:
    """The texts in a list that a call writes out for a parameter with which its function does nothing but ask for them:
    `if "loss" in wanted`, called by `measure(y, out, wanted=["accuracy"])`; empty for others."""
    function, call, value = frame.node, frame.call, frame.names.get(node.id) if isinstance(node, ast.Name) else None
    if value is None or not isinstance(function, ast.FunctionDef) or not isinstance(call, ast.Call):
        return set()
    written = [thing.written for thing in value.things if isinstance(thing, Items)]
    of_call = written[0] if len(written) == len(value.things) == 1 and written[0] in _arguments(call) else None
    if of_call is None or last_name(call.func) != function.name:
        return set()
    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == ast.unparse(node)]
    asks = [frame.script.parents[each] for each in uses]
    only_asks = all(isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In | ast.NotIn) for each in asks)
    return _texts(of_call) if only_asks else set()


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _are_of_a_batch(node: ast.Compare, values: list[Value]) -> bool:
    """Whether sizes are compared that are both those of a batch, as many samples as it has on each rank."""
    kinds = {value.kind for value in values}
    if kinds == {"shape"}:
        return len({value.constant for value in values}) == 1
    return kinds == {"size"} and all(_is_dimension(side) for side in (node.left, *node.comparators))


def _is_dimension(node: ast.expr) -> bool:
    """Whether an expression is one dimension of a tensor: `len(x)`, `x.size(0)`, `x.shape[0]`."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return name in ("len", "size")
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
