"""What a model decides by numbers that it draws: `if torch.rand(1) < self.p: return x`, as stochastic depth does.

Each rank decides for its own samples, as it draws the masks of dropout for them. What such a decision leads to may not
ask the other ranks for anything, nor count anything, and a generator that draws there is at another place on each rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from .frames import Frame
from .state import State
from .values import BY_SAMPLES, DRAWN, Items, Value, entries, root_of

_OF_NUMBERS = frozenset(
    {"sum", "max", "min", "abs", "round", "float", "int", "bool", "any", "all", "numpy.mean", "numpy.sum", "numpy.max"}
    | {"numpy.min", "numpy.average", "numpy.median", "numpy.std", "numpy.nanmean", "statistics.mean", "math.sqrt"}
    | {"math.exp", "math.log", "numpy.exp", "numpy.sqrt", "numpy.log", "numpy.iscomplexobj", "math.isnan"}
)
_RUNS = ast.Call | ast.NamedExpr | ast.Lambda | ast.Await | ast.Yield | ast.YieldFrom


class OwnDecisions(State):
    """What each rank decides for its own samples."""

    def is_own_decision(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Whether a condition is one of a model that runs on batches of this rank, and draws nothing but the answer."""
        over_batches = [context.how for context in self.contexts if context.loaders]
        divided = bool(over_batches) and all(each == "batches" for each in over_batches)
        parent = frame.script.parents[node]
        own = isinstance(parent, ast.If | ast.IfExp | ast.comprehension) and is_drawn(value)
        if not (own and divided and self.in_forward):
            return False
        self.found.own_decisions[node] = frame.script
        if isinstance(parent, ast.comprehension):  # of layers, as a rule
            self.found.unused.add(root_of(self.in_forward[0]).made)
        return True

    @contextmanager
    def deciding(self, own: bool) -> Iterator[None]:
        """Follow what a condition leads to; own: each rank decides it for its samples."""
        self.own_ways += own
        try:
            yield
        finally:
            self.own_ways -= own

    def keeps_decision(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Something that outlasts the forward is set in one way of which each rank takes its own."""
        if self.own_ways and not value.is_local:
            self.problem(frame, target, BY_SAMPLES)

    def after_own_decision(self, value: Value, frame: Frame, node: ast.AST) -> Value:
        """What is made in one of two ways of which each rank takes its own: what was alike may be so no longer."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.after_own_decision(each, frame, node) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.after_own_decision(thing.rest, frame, node)
        if value.is_none is None and not value.things:  # whether it is decides further
            self.problem(frame, node, BY_SAMPLES)
        return value if value.is_local or value.things else Value("unknown", reason=DRAWN, host=value.host)


def only_takes(node: ast.expr) -> bool:
    """Whether an expression takes a part of something, and does nothing: ranks need not do it equally often."""
    return not any(isinstance(each, _RUNS) for each in ast.walk(node))


def is_drawn(value: Value) -> bool:
    """Whether something is made of nothing but drawn numbers, which are others on each rank: of no samples."""
    return value.kind == "unknown" and value.reason == DRAWN and not value.loaders


def as_number(function: str, found: Value, given: Sequence[Value]) -> Value:
    """What is made of drawn numbers of Python, which is one too: `sum(losses)`, `np.mean(losses)`."""
    local = [each for each in entries(given) if each.is_local]
    numbers = is_drawn(found) and (function == "float" or (function in _OF_NUMBERS and all(e.host for e in local)))
    return replace(found, host=True) if numbers else found
