"""Statements in which each rank goes its own way by numbers that it has drawn: an evaluation of samples that are
augmented, a text that is written letter by letter until one ends it.

Nothing in them may ask the other ranks for anything, write files, or change what outlasts the function. What they leave
is drawn, too.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..batch_norm import normalizes
from ..quiet_statements import changed_names, is_quiet
from ..script import Script
from .exhaustive import may_leave
from .frames import Frame
from .own_decisions import OwnDecisions, is_drawn
from .scopes import FUNCTIONS, parameters_of
from .values import DRAWN, Items, Module, Value

_APART = "it is read where each rank goes its own way, by numbers that it has drawn"
_LOOPS = (ast.For, ast.While)
_FILLS = (ast.If, ast.Assign, ast.AugAssign, ast.Expr, ast.Pass)

_FILLED = frozenset(
    f"{library}.{name}"
    for library in ("torch", "numpy")
    for name in ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like")
)


class OwnRegions(OwnDecisions):
    """Where each rank goes its own way, outside of models."""

    def goes_own_way(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Whether each rank may decide something by what it has drawn: which way it takes, or how often it goes on."""
        if self.alone is None or self.in_forward or not is_drawn(value) or value.couples:
            return False
        region = frame.script.parents[node]
        if isinstance(region, ast.comprehension):
            region = frame.script.parents[region]
        around = _left(frame, region)
        in_samples = any(context.how == "rows" and context.loaders for context in self.contexts)
        if around is not region and in_samples:  # what comes behind a sample depends on it
            return False
        if around is None or not (self.is_quiet_region(region, frame) and self.is_quiet_region(around, frame)):
            return False
        if around is not region:  # it is followed as a whole, the next time
            self.found.alone.add(around)
        return True

    def only_begins(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Whether what a branch decides is nothing but to begin something that is drawn: `if self.total is None:
        self.total = torch.zeros(n)`. It is there afterwards, whichever rank had it before."""
        region = frame.script.parents[node]
        asks = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is) and is_drawn(value)
        if not asks or not isinstance(region, ast.If) or region.orelse or self.in_forward or self.own_ways:
            return False
        body = region.body[0] if len(region.body) == 1 else None
        if not isinstance(body, ast.Assign) or not _is_filled_alike(frame.script, body.value):
            return False
        begun = ast.unparse(node.left)  # type: ignore[attr-defined]
        return [ast.unparse(each) for each in body.targets] == [begun] and ast.unparse(node) == f"{begun} is None"

    def fills_own(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Whether a branch only fills what the function has made, by keys that are drawn: `if p in seen: seen[p] += 1`.
        What one rank has counted by its own keys, another one's answer does not fit."""
        region = frame.script.parents[node]
        if not isinstance(region, ast.If) or not is_drawn(value) or frame.node is frame.script.tree:
            return False
        given = parameters_of(frame.node) if isinstance(frame.node, FUNCTIONS) else set()
        changed = [*changed_names(region)]
        fills = any(in_place for _, in_place in changed)
        own = all(frame.owner(name.id) is frame and not (at and name.id in given) for name, at in changed)
        parts = (each for each in ast.walk(region) if isinstance(each, ast.stmt))
        return fills and own and all(isinstance(each, _FILLS) for each in parts)

    def is_alone(self, node: ast.AST) -> bool:
        """Whether each rank goes its own way through a loop, or a function, that it may leave by what it has drawn."""
        return self.alone is not None and node in self.alone

    def is_quiet_region(self, region: ast.AST, frame: Frame) -> bool:
        """Whether nothing in a statement, or in a function, is for other ranks, or for what comes behind it."""
        if not is_quiet(self.scripts, frame.script, region, self.wrapped_calls):
            return False
        given = parameters_of(frame.node) if isinstance(frame.node, FUNCTIONS) else set()
        for name, in_place in changed_names(region):
            if name.id in frame.outside or (in_place and name.id in given and frame.owner(name.id) is frame):
                return False
        return True

    def left_own(self, region: ast.AST, frame: Frame) -> None:
        """What statements leave in which each rank went its own way: what was alike may be so no longer."""
        for name in {each.id for each, _ in changed_names(region)}:
            owner = frame.owner(name)
            if owner is not None and _ends_there(name, region, frame):
                owner.names[name] = Value("unknown", reason=DRAWN)
            elif owner is not None:
                owner.names[name] = self.drawn_apart(owner.names[name], frame, region)

    def drawn_apart(self, value: Value, frame: Frame, node: ast.AST) -> Value:
        """What was made of something where each rank went its own way."""
        if value.is_local and not is_drawn(value):
            return value
        for thing in value.things:
            if not isinstance(thing, Items):
                self.problem(frame, node, _APART)
                return value
            thing.apart = True
            thing.known = {key: self.drawn_apart(each, frame, node) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.drawn_apart(thing.rest, frame, node)
        return replace(Value("unknown", reason=DRAWN, host=value.host), is_none=value.is_none)

    def read_apart(self, node: ast.AST, value: Value, frame: Frame) -> bool:
        """Refuse what all ranks would have to read together, where each goes its own way."""
        apart = bool(self.own_ways) and not self.in_forward and not is_drawn(value)
        if apart:
            self.problem(frame, node, f"`{ast.unparse(node)}` is read here: {_APART}", value.loaders)
        return apart

    def evaluates_apart(self, module: Module, node: ast.Call, frame: Frame) -> None:
        """A model evaluates where each rank goes its own way: nobody sends the statistics of rank 0 there (DDP602)."""
        if self.own_ways and not self.in_forward and normalizes(self.scripts):
            self.problem(frame, node, f"`{ast.unparse(node.func)}` is called here: {_APART}")


def _ends_there(name: str, region: ast.AST, frame: Frame) -> bool:
    """Whether nothing behind some statements of a function, or in its other ones, reads a variable: `ax` of a loop that
    draws."""
    inside = {*ast.walk(region)}
    names = (each for each in ast.walk(frame.node) if isinstance(each, ast.Name) and each.id == name)
    own = frame.owner(name) is frame and isinstance(frame.node, FUNCTIONS)
    return own and all(each in inside for each in names)


def _is_filled_alike(script: Script, node: ast.expr) -> bool:
    """Whether something is made of zeros and the like, without a draw: `torch.zeros((n, n), device=x.device)`."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    parts = [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)]
    return bool(calls) and not parts and all(script.qualified(each.func) in _FILLED for each in calls)


def counted_apart(value: Value) -> Value:
    """What is decided by whether there are entries, or how many: each rank may have drawn another number of them."""
    apart = any(isinstance(thing, Items) and thing.apart for thing in value.things)
    return Value("unknown", reason=DRAWN, host=True) if apart else value


def _left(frame: Frame, region: ast.AST) -> ast.AST | None:
    """What a statement may leave: the function, a loop around it, or itself alone; None for a file."""
    parts = [*ast.walk(region)] if isinstance(region, ast.stmt) else []
    if any(isinstance(each, ast.Return) for each in parts):
        return frame.node if isinstance(frame.node, ast.FunctionDef) else None
    if isinstance(region, ast.If) and may_leave(region):
        return next((each for each in frame.script.ancestors(region) if isinstance(each, _LOOPS)), None)
    return region
