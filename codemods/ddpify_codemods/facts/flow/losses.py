"""Losses of torch: means over the samples of a batch, or over what counts of their targets."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .dimensions import of_dimensions, of_losses
from .frames import Frame, Problem
from .given import given_to
from .own_decisions import is_drawn
from .packed import PACKED
from .reductions import loss_of
from .values import Value, root_of
from .weighed_calls import WeighedCalls
from .weighing import Origin, Weighed, is_repeatable, runs_always, target_of, weighed


class Losses(WeighedCalls):
    """What losses make of batches."""

    def loss(self, name: str, node: ast.Call, given: Sequence[Value], reduction: str, frame: Frame) -> Value:
        """A loss for which all targets count alike. name: that of its function or class."""
        result, target = loss_of(given, reduction, False), target_of(node)
        if reduction == "none":
            return of_dimensions(result, of_losses(name, given))
        picks = [value for value in given if value.kind == "picked"]
        mean = _as_if_of_rows(given, reduction)
        if mean.kind != "mean" or not picks or any(value.reason != PACKED for value in picks):
            return result
        trains = all(self.status.get(each) == "training" for value in picks for each in value.loaders)
        apart = self.in_forward or any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        if not trains or apart or target is None or not is_repeatable(target) or not runs_always(frame.script, node):
            return result
        self.found.weighed[node] = Weighed(frame.script, node, f"len({ast.unparse(target)})", node, keeps_mean=True)
        return mean

    def weighed_loss(self, node: ast.Call, made: ast.Call, given: list[Value], reduction: str, frame: Frame) -> Value:
        """A loss of targets of which some count more, or not at all: a mean, if it is divided by what all ranks have.

        made: the call that makes it; the same one for a function.
        """
        if reduction != "mean":
            return loss_of(given, reduction, True)
        made_in = next(script for script in self.scripts if made in script.parents)

        def origin(argument: ast.expr) -> Origin:
            given, there = given_to(argument, frame) if made is node else (argument, None)
            return (there.script if there else made_in), given

        one = weighed(frame.script, node, made, self.leaves_out(), origin)
        together = not self.own_ways and not any(context.how == "rows" for context in self.contexts)
        result = _as_if_of_rows(given, reduction)
        drawn = [value for value in given if value.is_local and is_drawn(value)]  # by each rank, for itself
        alike = not any(value.is_local and value not in drawn for value in given)
        if one is None or not together or not (alike or result.kind == "mean"):
            self.found.not_weighed.add(made)
            return loss_of(given, reduction, True)
        this = self.in_forward[-1] if self.in_forward else None
        method = frame.node if isinstance(frame.node, ast.FunctionDef) and this is not None else None
        if method is not None and this is not None and this in frame.owners and method.args.args:
            one = replace(one, trains=f"{method.args.args[0].arg}.training")
        self.is_weighed(one)
        self.found.weighs |= {made} if result.kind == "mean" else set()
        loaders = frozenset(each for each in result.loaders if self.status.get(each) != "training")
        loaders |= frozenset().union(*(context.loaders for context in self.contexts if self.uneven(context)))
        own = "drawn" if any(value in drawn for value in given[1:]) else ""  # targets, by which it divides
        how = "apart" if loaders else own or ("together" if result.kind == "mean" else "")
        evaluates = bool(one.trains) and root_of(self.in_forward[0]).evaluates
        if how:
            self.found.weighed_ways.setdefault(node, set()).add((how, bool(self.without_gradients), evaluates))
        if loaders and not evaluates:
            reason = "what its targets count for together is asked of all ranks, of each batch"
            self.found.weighed_apart.setdefault(node, set()).add(Problem(frame.script, node, reason, loaders))
        elif how == "together" and not evaluates:
            self.found.weighed_together.add(node)
        by_samples = any(self.status.get(each) == "sharded" for each in result.loaders)  # not of whole batches
        return loss_of(given, reduction, True) if by_samples else result


def _as_if_of_rows(given: Sequence[Value], reduction: str) -> Value:
    """What a loss would be if all samples had as many rows."""
    rows = [replace(each, kind="rows") if each.kind == "picked" else each for each in given]
    return loss_of(rows, reduction, False)
