"""What a model makes as long as the longest sample of its batch: the ranks agree on that of all of them.

They do so where it trains, with gradients, if that is needed. An evaluation, of which ranks have other batches, and
not equally many, runs without: there, the function that they agree by gives back what it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .frames import FlowFacts, Frame
from .state import State
from .values import LONGEST, Loader, Value, entries


class Longest(State):
    """Where ranks agree on a length."""

    def agree(self, node: ast.Call, values: Iterable[Value], frame: Frame) -> bool:
        """Whether the ranks agree on the length of the longest sample where a call asks for that."""
        loaders = {each for value in entries(values) for each in value.loaders}
        around = {each for context in self.contexts for each in context.loaders}
        trains = bool(loaders) and all(self.status.get(each) == "training" for each in loaders | around)
        if self.without_gradients:
            self.found.agreed_quietly.add(node)
        elif not trains or any(context.how == "rows" for context in self.contexts):
            self.found.agreed_apart.add(node)
        else:
            self.found.agreed[node] = frame.script
            return node in self.lengths
        return False


def learn_lengths(lengths: set[ast.Call], found: FlowFacts, status: dict[Loader, str]) -> bool:
    """Let ranks agree on lengths where training needs it, and can; whether that is new."""
    before = set(lengths)
    needed = any(
        LONGEST in problem.reason
        and (not problem.loaders or any(status.get(each) == "training" for each in problem.loaders))
        for problem in found.problems
    )
    lengths.update(found.agreed if needed else ())
    lengths -= found.agreed_apart
    return lengths != before
