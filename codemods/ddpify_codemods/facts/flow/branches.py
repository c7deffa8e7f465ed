"""Follows statements of which the run takes one way: `if`, `match`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..header import is_guard_test
from .asserted import ends_the_run, exits, may_be_caught, parts
from .by_default import holds_by_default
from .calls import Calls, differs
from .class_tests import known_ways
from .exhaustive import is_exhaustive, may_leave
from .frames import Frame, Problem
from .one_by_one import loops_around
from .own_decisions import is_drawn
from .truth import MAY_TRAIN, is_same_in, truth
from .values import ADDITIVE, LOCAL_ROWS, SAME, Module, Value, join

Names = dict[str, Value]


class Branches(Calls):
    """What is known after several ways."""

    def do_if(self, node: ast.If, frame: Frame) -> None:
        if is_guard_test(node.test):  # also within a loop, where it is as true as at the end of the file
            self.block(node.body if frame.script is self.scripts[0] else node.orelse, frame)
            return
        raises = isinstance(node.body[-1], ast.Raise) and all(isinstance(each, ast.Assign) for each in node.body[:-1])
        test = self.asserts(node.test, True, frame, node.body[-1]) if raises else self.value(node.test, frame)
        own = not raises and self.decided(node.test, test, frame)
        holds = None if own else truth(node.test, test)
        if holds is None:
            self.found.come_to |= {*node.body, *node.orelse}
        if own:
            self.own_ways_of(node, frame)
        elif holds is not None:
            taken, left_out = (node.body, node.orelse) if holds else (node.orelse, node.body)
            self.found.passed_by |= {*left_out}
            self.found.come_to |= {*taken}
            self.block(taken, frame)
            returns = bool(taken) and isinstance(taken[-1], ast.Return)
            frame.left |= returns and frame.script.parents[node] is frame.node
        elif is_exhaustive(frame.script, node) or (self.in_forward and holds_by_default(node, frame)):
            self.block(node.body, frame)
        else:
            ends = leaves(node.body), leaves(node.orelse)
            turns = self.goes_no_further(node.body, frame), self.goes_no_further(node.orelse, frame)
            one, two = known_ways(node.test, frame.names)
            before, counts = self.backwards, list[int]()
            first = partial(self.counting, counts, one, node.body, frame)
            other = partial(self.counting, counts, two, node.orelse, frame)
            self.either(frame, first, other, ends, turns, node.test)
            self.may_train(node, (counts[0] > before, counts[1] > counts[0]), frame)

    def goes_no_further(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Whether no backward pass below comes after a block: it ends the turn of a loop, or the run."""
        raises = bool(body) and (isinstance(body[-1], ast.Raise) or exits(frame, body[-1]))
        return ends_turn(body) or (raises and ends_the_run(frame, body[-1]))

    def counting(self, counts: list[int], names: Mapping[str, Value], block: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow a way of which something is known, and count the backward passes until its end.

        Args: counts: gets their number; names: what is known to hold there.
        """
        frame.names.update(names)
        self.block(block, frame)
        counts.append(self.backwards)

    def may_train(self, node: ast.If, trains: tuple[bool, bool], frame: Frame) -> None:
        """Note where it is not known whether a loop over batches trains, or evaluates: `if self.training:`.

        Args: node: what decides; trains: whether there is a backward pass in each of its ways.
        """
        context = self.contexts[-1] if self.contexts else None
        if context is None or context.frame is not frame or trains[0] is trains[1]:
            return
        if is_same_in(context.node, node.test):
            problem = Problem(frame.script, node.test, MAY_TRAIN, context.loaders)
            self.found.may_train.setdefault(context.node, {}).update(dict.fromkeys(context.loaders, problem))

    def own_ways_of(self, node: ast.If, frame: Frame) -> None:
        """Follow two ways of which each rank takes its own."""
        ends, turns = (leaves(node.body), leaves(node.orelse)), (ends_turn(node.body), ends_turn(node.orelse))
        first, other = partial(self.block, node.body, frame), partial(self.block, node.orelse, frame)
        with self.deciding(True):
            self.either(frame, first, other, ends, turns)
        if not self.in_forward:
            self.left_own(node, frame)
            return
        frame.decides_alone |= may_leave(node)
        parts = (part for each in (*node.body, *node.orelse) for part in ast.walk(each))
        for name in {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}:
            if name in frame.names:
                frame.names[name] = self.after_own_decision(frame.names[name], frame, node)

    def asserts(self, test: ast.expr, negated: bool, frame: Frame, raised: ast.stmt) -> Value:
        """What is raised after unless a condition holds; negated: if it does. A rank need not ask the others whether it
        holds for all samples; raised: the statement that does."""
        several = parts(test, negated) if not may_be_caught(frame, raised) else None
        values = [self.value(each, frame) for each in several or ()]
        if several is None or any(value.kind in ADDITIVE for value in values):
            value = self.value(test, frame)
            quiet = is_drawn(value) and ends_the_run(frame, raised)
            if (negated or value.kind not in LOCAL_ROWS) and not quiet:
                self.decided(test, value, frame)
            return value
        return values[0] if len(values) == 1 and several == [test] else SAME

    def do_match(self, node: ast.Match, frame: Frame) -> None:
        subject = self.value(node.subject, frame)
        if differs(subject):
            self.demand(node.subject, subject, frame)
        self.cases(node.cases, Value(things=subject.things), frame)

    def cases(self, cases: Sequence[ast.match_case], subject: Value, frame: Frame) -> None:
        """One of some cases, or none of them."""
        if not cases:
            return
        first, others = cases[0], cases[1:]
        for part in ast.walk(first.pattern):
            name = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
            if name:
                frame.names[name] = subject
        if first.guard is not None:
            self.decided(first.guard, self.value(first.guard, frame), frame)
        elif _takes_all(first):
            self.block(first.body, frame)
            return
        ends = leaves(first.body), False
        all_end = any(map(_takes_all, others)) and all(self.goes_no_further(each.body, frame) for each in others)
        turns = self.goes_no_further(first.body, frame), all_end
        self.either(
            frame, lambda: self.block(first.body, frame), lambda: self.cases(others, subject, frame), ends, turns
        )

    def either(
        self,
        frame: Frame,
        first: Callable[[], None],
        other: Callable[[], None],
        ends: tuple[bool, bool],
        turns: tuple[bool, bool] = (False, False),
        test: ast.expr | None = None,
    ) -> None:
        """Follow two ways of which the run takes one; ends: whether the function ends with them; turns: whether the
        turn of a loop does; test: what decides."""
        before, gradients, had_begun, used = dict(frame.names), self.gradients, self.has_begun, {*self.began}
        outer, self.always = self.always, set()
        self.undecided += 1
        with self.keeping(before):
            first()
        once, self.always = self.always, set()
        names, frame.names = frame.names, before
        gradients, self.gradients = self.gradients, gradients
        has_begun, self.has_begun = self.has_begun, had_begun
        began = {*self.began}
        self.began = self.began if any(loops_around(frame)) else used  # in a loop, the next turn may take the other way
        with self.keeping(names):
            other()
        self.undecided -= 1
        self.has_begun &= has_begun
        self.began |= began
        self.called_either_way = once, self.always
        self.one_way_of_two(outer, once, test, frame)
        if turns[1] and not turns[0]:  # what the other way leaves is known at the end of the turn
            self.gradients = gradients
        elif turns[0] is turns[1]:
            self.gradients = self.gradients.or_else(gradients)
        self.merge(frame, names, *ends)

    def merge(self, frame: Frame, first: Names, ends: bool = False, other_ends: bool = False) -> None:
        """Join the names of two ways that may have been taken."""
        second = frame.names
        if ends and not other_ends:
            return
        if other_ends and not ends:
            frame.names = first
            return
        frame.names = {
            name: join(first[name], second[name])
            if name in first and name in second
            else first.get(name, second.get(name, SAME))
            for name in {**first, **second}
        }

    def at_times_only(
        self, ways: tuple[set[Module], set[Module]], left: ast.stmt, frame: Frame, rest: Callable[[], None]
    ) -> None:
        """Follow what a forward comes to unless a statement has left the function, or the turn of a loop, before:
        `if torch.rand(1) < self.p: return x`.

        Args:
            ways: the layers that are called in the last two ways, of which one may leave. left, rest: that statement,
                and what comes after it.
        """
        once = ways[0] if isinstance(left, ast.If) and any(map(may_leave, left.body)) else ways[1]
        outer, self.always = self.always, set()
        with self.deciding(frame.decides_alone):
            rest()
        self.one_way_of_two(outer, once, left.test if isinstance(left, ast.If) else None, frame)


def asks_training(node: ast.stmt) -> bool:
    """Whether a condition is `self.training` alone, which is the same in each step."""
    test = node.test if isinstance(node, ast.If) else None
    test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(test, ast.Attribute) and test.attr == "training"


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block always ends its function."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise)


def ends_turn(body: Sequence[ast.stmt]) -> bool:
    """Whether a block always ends a turn of the loop around it."""
    return bool(body) and isinstance(body[-1], ast.Continue | ast.Break)


def _takes_all(case: ast.match_case) -> bool:
    """Whether a case takes whatever is left: `case _`."""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
