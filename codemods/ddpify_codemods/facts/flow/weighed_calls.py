"""Calls of losses that weigh their targets: which of several losses one calls, and whether all ranks are there
together."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from ..script import KEPT, Script
from .given_parameters import GivenParameters
from .longest import computes_again
from .operation_names import LOSS_CLASSES
from .values import SAME, Module, Thing
from .weighing import Weighed, loss_called

_NAMED = ast.Name | ast.Attribute
_WITH_GRADIENTS = "torch.is_grad_enabled()"


class WeighedCalls(GivenParameters):
    """What is known of such calls once a program has been followed."""

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

    def is_weighed(self, one: Weighed) -> None:
        """A call is divided by what its targets count for: the losses that it may call, all by the same."""
        before = self.found.weighed.get(one.node)
        if before is not None and before.made is not one.made:
            if (before.count, before.trains) != (one.count, one.trains):
                self.found.not_weighed |= {one.made, *before.makes}
            one = replace(one, also=frozenset(before.makes) - {one.made})
        self.found.weighed[one.node] = replace(one, also=before.also) if before and before.made is one.made else one

    def chooses_loss(self, node: ast.Call, things: Collection[Thing]) -> None:
        """A loss is one of several, of which some are divided by what all ranks' targets count for: where it is one."""
        one = self.found.weighed[node]
        own = [each for each in things if isinstance(each, Module) and each.made in one.makes]
        others = [each for each in things if each not in own]
        if not others:
            return
        kind = own[0].name if own and len({each.name for each in own}) == 1 else ""
        means = [each for each in others if kind and self.is_mean(each, kind)]
        rest = [each for each in others if each not in means]
        if not kind or one.trains or (rest and not self.is_told_apart(one, kind, rest)):
            self.found.not_weighed |= {*one.makes}
            return
        loss = ast.unparse(loss_called(node))
        asks = [f"isinstance({loss}, {ast.unparse(one.made.func)})"] if rest else []
        asks += [f'{loss}.reduction == "sum"'] if means else []
        self.found.weighed[node] = replace(one, asks=" and ".join(asks))

    def is_mean(self, thing: Thing, kind: str) -> bool:
        """Whether something is a loss of torch's, of a class, that counts all targets alike and stays a mean."""
        if not isinstance(thing, Module) or thing.cls is not None or thing.name != kind or thing.is_one_of:
            return False
        changed = not thing.attributes.keys().isdisjoint(("weight", "ignore_index")) or bool(thing.made_of_batch)
        is_mean = thing.attributes.get("reduction", SAME).constant == "mean"
        return not changed and is_mean and isinstance(thing.made, ast.Call) and not self.is_weighted(thing.made)

    def is_told_apart(self, one: Weighed, kind: str, others: Collection[Thing]) -> bool:
        """Whether the class of a loss, which is named where it is called, tells it from others."""
        named = all(made in one.script.parents and isinstance(made.func, _NAMED) for made in one.makes)
        last = kind.rpartition(".")[2]
        return named and not any(not isinstance(each, Module) or _may_be(each, last) for each in others)

    def tells_training(self, node: ast.Call) -> None:
        """Within a model: whether gradients are computed tells training from an evaluation, where its mode does not."""
        one, ways = self.found.weighed[node], self.found.weighed_ways.get(node, set())
        apart = {(quiet, evaluates) for how, quiet, evaluates in ways if how != "together"}
        trains_quietly = {quiet for how, quiet, _ in ways if how == "together"} != {False}
        by_gradients = not trains_quietly and all(quiet for quiet, _ in apart)
        if not one.trains or not by_gradients or all(evaluates for _, evaluates in apart):
            return
        if not any(computes_again(each) or _switches_gradients(each) for each in self.scripts):
            self.found.weighed[node] = replace(one, trains=_WITH_GRADIENTS)

    def end_weighing(self) -> None:
        """Let evaluations be whole that share a call of a loss with training, which divides by all ranks' targets; and
        losses be divided only where they are those that leave targets out."""
        for node in [*self.found.weighed]:
            if len(things := self.called_as.get(node, set())) > 1:
                self.chooses_loss(node, things)
            self.tells_training(node)
        for node, ways in self.found.weighed_ways.items():
            one = self.found.weighed[node]
            if one.trains == _WITH_GRADIENTS:
                continue
            if node in self.found.weighed_together or one.trains:
                self.found.problems += self.found.weighed_apart.get(node, ())
                if any(how == "drawn" for how, _, evaluates in ways if not evaluates):
                    self.found.not_weighed |= {*one.makes}

    def leaves_out(self) -> bool:
        """Whether targets may occur that torch's losses leave out without being told."""
        return any(-100 in _constants(script) or _reads_ignored(script) for script in self.scripts)


def _may_be(module: Module, kind: str) -> bool:
    """Whether a loss may be one of a class, or derived from it."""
    bases = [ast.unparse(each) for each in module.cls.node.bases] if module.cls else [module.name]
    return module.is_one_of or any(each.rpartition(".")[2] in (kind, "") for each in bases) or not bases


@lru_cache(maxsize=KEPT)
def _switches_gradients(script: Script) -> bool:
    """Whether a file lets gradients be computed within what computes none, or from some line on."""
    statements = (each.value for each in script.find(ast.Expr) if isinstance(each.value, ast.Call))
    switched = any(_last(each.func) == "set_grad_enabled" for each in statements)
    return switched or any(_last(each) == "enable_grad" for each in script.find(ast.Name, ast.Attribute))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


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
