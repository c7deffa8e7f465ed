"""Losses of torch: means over the samples of a batch, or over what counts of their targets."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .bags import of_each_sample
from .dimensions import of_dimensions, of_losses
from .frames import Frame, Problem
from .given import given_to
from .operation_names import LOSS_CLASSES, WEIGHTED
from .own_decisions import is_drawn
from .packed import PACKED
from .reductions import loss_of
from .values import Module, Value, root_of
from .weighed_calls import WeighedCalls
from .weighing import Origin, Weighed, is_repeatable, runs_always, target_of, weighed

_MAKING = frozenset({"__init__", "__new__", "__setattr__", "__getattribute__", "__getattr__"})


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

    def of_loss_class(self, node: ast.Call, given: Sequence[Value], frame: Frame) -> Value | None:
        """What `super().forward(out, y)` is in a class derived from a loss of torch, which is made by that alone, as a
        mean, and in which all targets count alike; None for other calls."""
        function = node.func
        owner = function.value if isinstance(function, ast.Attribute) and function.attr == "forward" else None
        asks = isinstance(owner, ast.Call) and not owner.args and self.name_of(owner.func) == "super"
        this = [*frame.this.things] if asks and frame.this is not None and not node.keywords else []
        one = this[0] if len(this) == 1 else None
        if not isinstance(one, Module) or one.cls is None or one.attributes or not isinstance(one.made, ast.Call):
            return None
        cls, bases = one.cls.node, [one.cls.script.qualified(each) for each in one.cls.node.bases]
        told = one.made.args or one.made.keywords or cls.keywords or cls.decorator_list
        plain = all(_is_plain(each) for each in cls.body)
        last = bases[0].rpartition(".")[2] if len(bases) == 1 and bases[0].startswith("torch.nn.") else ""
        if told or not plain or last not in LOSS_CLASSES - WEIGHTED or cls not in frame.script.ancestors(node):
            return None
        if any("reduction" in each.text for each in self.scripts):
            return None  # it may be set later, in whatever way
        return self.loss(last, node, of_each_sample(last, given), "mean", frame)

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


def _is_plain(node: ast.stmt) -> bool:
    """Whether a part of a class changes nothing of how a loss is made, and what it is called: a text, a method."""
    if isinstance(node, ast.FunctionDef):
        return node.name not in _MAKING and not node.decorator_list
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _as_if_of_rows(given: Sequence[Value], reduction: str) -> Value:
    """What a loss would be if all samples had as many rows."""
    rows = [replace(each, kind="rows") if each.kind == "picked" else each for each in given]
    return loss_of(rows, reduction, False)
