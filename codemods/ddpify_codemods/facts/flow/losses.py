"""Losses of torch: means over the samples of a batch, or over what counts of their targets."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..script import Script
from .bags import of_each_sample
from .dimensions import of_dimensions, of_losses
from .frames import Frame, Problem
from .given import given_to
from .given_parameters import GivenParameters
from .operation_names import LOSS_CLASSES, WEIGHTED
from .own_decisions import is_drawn
from .packed import PACKED
from .reductions import loss_of
from .values import Module, Thing, Value, root_of
from .weighing import Origin, Weighed, is_repeatable, runs_always, target_of, weighed

_NAMED = ast.Name | ast.Attribute
_MAKING = frozenset({"__init__", "__new__", "__setattr__", "__getattribute__", "__getattr__"})


class Losses(GivenParameters):
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
        return self.loss(last, node, of_each_sample(last, given), "mean", frame)

    def is_weighted(self, call: ast.Call) -> bool:
        """Whether a classification loss weighs its classes, or leaves targets out."""
        words = {
            word.arg
            for word in call.keywords
            if not (isinstance(word.value, ast.Constant) and word.value.value is None)
        }
        is_function = (self.name_of(call.func)).rpartition(".")[2] not in LOSS_CLASSES
        before = 2 if is_function else 0
        by_place = [*call.args[before : before + 1], *call.args[before + 2 : before + 3]]  # weight, ignore_index
        given = any(not (isinstance(each, ast.Constant) and each.value is None) for each in by_place)
        return self.leaves_out() or bool(words & {"weight", "ignore_index"}) or given

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
        alike = not any(value.is_local for value in given[1:]) and not any(
            value.is_local and not is_drawn(value) for value in given[:1]
        )  # all ranks have the same targets
        if one is None or not together or not (alike or result.kind == "mean"):
            self.found.not_weighed.add(made)
            return loss_of(given, reduction, True)
        this = self.in_forward[-1] if self.in_forward else None
        method = frame.node if isinstance(frame.node, ast.FunctionDef) and this is not None else None
        if method is not None and this is not None and this in frame.owners and method.args.args:
            one = replace(one, trains=f"{method.args.args[0].arg}.training")
        self.found.weighed[node] = one
        self.found.weighs |= {made} if result.kind == "mean" else set()
        if one.trains and root_of(self.in_forward[0]).evaluates:
            return result
        loaders = frozenset(each for each in result.loaders if self.status.get(each) != "training")
        loaders |= frozenset().union(*(context.loaders for context in self.contexts if self.uneven(context)))
        if loaders:
            reason = "what its targets count for together is asked of all ranks, of each batch"
            self.found.weighed_apart.setdefault(node, set()).add(Problem(frame.script, node, reason, loaders))
        elif result.kind == "mean":
            self.found.weighed_together.add(node)
        return result

    def chooses_loss(self, node: ast.Call, things: set[Thing]) -> None:
        """A loss is one of several, of which one is divided by what all ranks' targets count for: where it is that."""
        one = self.found.weighed[node]
        own = [each for each in things if isinstance(each, Module) and each.made is one.made]
        others = [each for each in things if each not in own]
        if not others:
            return
        kind = own[0].name.rpartition(".")[2] if own else ""
        told = kind and one.made in one.script.parents and not one.trains and isinstance(one.made.func, _NAMED)
        if not told or any(not isinstance(each, Module) or _may_be(each, kind) for each in others):
            self.found.not_weighed.add(one.made)
            return
        asks = f"isinstance({ast.unparse(node.func)}, {ast.unparse(one.made.func)})"
        self.found.weighed[node] = replace(one, asks=asks)

    def end_weighing(self) -> None:
        """Let evaluations be whole that share a call of a loss with training, which divides by all ranks' targets; and
        losses be divided only where they are those that leave targets out."""
        for node in [*self.found.weighed]:
            if len(things := self.called_as.get(node, set())) > 1:
                self.chooses_loss(node, things)
        for node, problems in self.found.weighed_apart.items():
            if node in self.found.weighed_together or self.found.weighed[node].trains:
                self.found.problems += problems

    def leaves_out(self) -> bool:
        """Whether targets may occur that torch's losses leave out without being told."""
        return any(-100 in _constants(script) or _reads_ignored(script) for script in self.scripts)


def _is_plain(node: ast.stmt) -> bool:
    """Whether a part of a class changes nothing of how a loss is made, and what it is called: a text, a method."""
    if isinstance(node, ast.FunctionDef):
        return node.name not in _MAKING and not node.decorator_list
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _may_be(module: Module, kind: str) -> bool:
    """Whether a loss may be one of a class, or derived from it."""
    bases = [ast.unparse(each) for each in module.cls.node.bases] if module.cls else [module.name]
    return module.is_one_of or any(each.rpartition(".")[2] in (kind, "") for each in bases) or not bases


def _as_if_of_rows(given: Sequence[Value], reduction: str) -> Value:
    """What a loss would be if all samples had as many rows."""
    rows = [replace(each, kind="rows") if each.kind == "picked" else each for each in given]
    return loss_of(rows, reduction, False)


@lru_cache(maxsize=64)
def _reads_ignored(script: Script) -> bool:
    """Whether a file marks targets as its loss leaves them out: `y[mask] = criterion.ignore_index`."""
    return any(node.attr == "ignore_index" for node in script.find(ast.Attribute) if isinstance(node.ctx, ast.Load))


@lru_cache(maxsize=64)
def _constants(script: Script) -> frozenset[int]:
    """The negative numbers that are written in a file."""
    return frozenset(
        -node.operand.value
        for node in script.find(ast.UnaryOp)
        if isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
    )
