"""What a model makes as long as the longest sample of its batch: the ranks agree on that of all of them.

They do so where it trains, with gradients, if that is needed. An evaluation, of which ranks have other batches, and
not equally many, runs without: there, the function that they agree by gives back what it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from ..script import KEPT, Script
from .frames import FlowFacts, Frame, Lengths
from .joined import last_name
from .state import State
from .values import BY_SAMPLES, COUPLES, LONGEST, Loader, Value, entries

LARGEST = frozenset({"max", "int", "item"})  # by which a number is asked for


class Longest(State):
    """Where ranks agree on a length."""

    def agree(self, node: ast.Call, values: Iterable[Value], frame: Frame) -> bool:
        """Whether the ranks agree on the length of the longest sample where a call asks for that."""
        loaders = {each for value in entries(values) for each in value.loaders}
        around = {each for context in self.contexts for each in context.loaders}
        trains = bool(loaders) and all(self.status.get(each) == "training" for each in loaders | around)
        if any(map(computes_again, self.scripts)):
            return False
        if self.without_gradients:
            self.found.agreed_quietly.add(node)
        elif not trains or self.own_ways or any(context.how == "rows" for context in self.contexts):
            self.found.agreed_apart.add(node)
        else:
            self.found.agreed[node] = frame.script
            return node in self.lengths.asked
        return False

    def asks_longest(self, bound: ast.expr, frame: Frame) -> None:
        """Something that a model computes is as long as a number says: note where it asks for the longest sample."""
        asked = _longest(bound, frame) if self.in_forward else None
        value = self.value(asked, frame)
        if asked is not None and value.is_local:
            self.agree(asked, [value], frame)


@lru_cache(maxsize=KEPT)
def computes_again(script: Script) -> bool:
    """Whether a forward may run twice, without gradients at first: torch.utils.checkpoint."""
    return any(
        script.qualified(each).startswith("torch.utils.checkpoint.") for each in script.find(ast.Attribute)
    ) or any(name.startswith("torch.utils.checkpoint") for name in script.imported.values())


def _longest(node: ast.expr, frame: Frame, depth: int = 3) -> ast.Call | None:
    """The call that gives the largest of some numbers, as a number of Python or in a tensor; None for others.

    It is an operand as well: `range(1, max(lengths) + 1)`.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant):
        return _longest(node.left, frame, depth)
    if isinstance(node, ast.Name):
        given = _only_value(node.id, frame.node) if depth else None
        return None if given is None else _longest(given, frame, depth - 1)
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    name, alone = last_name(node), len(node.args) == 1
    if name == "int" and alone:
        return None if _longest(node.args[0], frame, depth) is None else node
    if name == "item" and not node.args and isinstance(node.func, ast.Attribute):
        return None if _longest(node.func.value, frame, depth) is None else node
    is_function = isinstance(node.func, ast.Name) or frame.script.qualified(node.func) == "torch.max"
    largest = name == "max" and (alone if is_function else not node.args)
    return node if largest else None


def _only_value(name: str, function: ast.AST) -> ast.expr | None:
    """What a name stands for that a function gives a value once."""
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    once = len([each for each in stores if not isinstance(each.ctx, ast.Load)]) == 1
    assigned = (each for each in ast.walk(function) if isinstance(each, ast.Assign) and len(each.targets) == 1)
    values = [each.value for each in assigned if ast.unparse(each.targets[0]) == name]
    return values[0] if once and values else None


def learn_lengths(lengths: Lengths, found: FlowFacts, status: dict[Loader, str]) -> bool:
    """Let ranks agree on lengths where training needs it, and can; whether that is new."""
    before = set(lengths.asked)
    reasons = " ".join(
        problem.reason
        for problem in found.problems
        if not problem.loaders or any(status.get(each) == "training" for each in problem.loaders)
    )
    if LONGEST in reasons or BY_SAMPLES in reasons:
        lengths.asked.update(found.agreed)
    elif COUPLES in reasons:  # so is what a mask of as many steps makes of samples
        lengths.asked.update(call for call in found.agreed if last_name(call) in LARGEST)
    lengths.apart |= found.agreed_apart
    lengths.asked -= lengths.apart
    return lengths.asked != before
