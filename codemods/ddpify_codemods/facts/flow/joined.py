"""Losses that are no mean and no sum over samples: what they are made of is brought together from the ranks, with
gradients through it.

Each rank then computes the loss of the batch of all ranks. What the W ranks' backward passes send back to what a rank
has given is W times its gradient, which DistributedDataParallel divides by W.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from .frames import Frame, Problem, Reduction
from .held_values import local_entries
from .operands import operands
from .operation_names import LOSS_CLASSES, LOSSES
from .state import State
from .values import (
    ADDITIVE,
    BROADCAST,
    LOCAL_ROWS,
    MIXED,
    SAME,
    Class,
    Function,
    Instance,
    Items,
    Library,
    Loader,
    Module,
    Value,
    differentiated,
    is_network,
    made_of,
    root_of,
)

_APART = "a loss of the batches of all ranks is computed here of others, and with gradients"

# What tells a number of samples, or one number of all of them.
_NUMBERS = frozenset({"size", "shape", "len", "dim", "numel", "item", "device", "dtype"})
_OF_GRAPH = frozenset({"grad", "backward", "register_hook", "retain_grad", "checkpoint"})
_CUTS = frozenset({"detach", "data", "item", "tolist", "numpy", "argmax", "argmin", "size", "shape", "len"})
_REDUCTIONS = frozenset({"sum", "mean", "std", "var", "norm", "max", "min", "prod", "median"})


class Together(State):
    """What is brought together from the ranks, with gradients."""

    def noted_join(self, value: Value, node: ast.expr, function: Value, parts: Sequence[Value]) -> Value:
        """What an operation makes, with the note that something may begin here that cannot be divided: made of means
        and sums, or of samples all of which it computes with.

        function: what a call calls. parts: what it is given.
        """
        local = [part for part in parts if part.is_local or local_entries(part)]
        if value.reason == BROADCAST:  # nobody means it
            return value
        if is_changing(node) or last_name(node) == "range":  # over a rank's own samples
            return value
        unseen = any(map(is_unseen, function.things))
        asked = node in self.found.asked_whole
        if not local or not self.may_join(value.loaders):
            return value
        if value.kind not in ("unknown", *LOCAL_ROWS) and not asked:
            return value
        begins = value.kind == "unknown" and not any(part.kind == "unknown" for part in local)
        stays = self.in_forward and any(part.host for part in local)  # for a forward cannot ask the others for it
        if begins and not stays and any(map(can_be_term, local)):
            value = replace(value, terms=frozenset({node}))
        calls = frozenset().union(*(part.calls for part in local))
        inside = value.forwards - frozenset().union(*(part.forwards for part in parts))
        others = [part for part in local if not part.calls]
        whole = any(map(has_samples, others)) or (others and all(part.kind == "size" for part in others))
        alike = not self.in_trained_model() and not self.found.pads  # samples are as long on all ranks
        joinable = whole and not inside and alike and all(map(can_be_joined, others))
        picks = value.kind == "picked" and not any(part.kind == "picked" for part in local)
        if (value.kind == "unknown" or unseen or picks or asked) and joinable:
            self.found.calls |= {node} if asked else set()
            self.found.calls_within.setdefault(node, set()).update(value.calls - calls)
            return replace(value, calls=calls | {node})
        return replace(value, calls=value.calls | calls) if calls - value.calls else value

    def may_join(self, loaders: Iterable[Loader]) -> bool:
        """Whether batches are those of training, of which all ranks have as many, and as long ones."""
        each_trains = [self.status.get(each) == "training" for each in loaders]
        apart = self.own_ways or any(context.how == "rows" for context in self.contexts)
        return bool(each_trains) and all(each_trains) and not apart

    def in_trained_model(self) -> bool:
        """Whether what is followed is the forward of a trained model, not of a loss alone."""
        return any(root_of(each).made in self.trained for each in self.in_forward)

    def after_joining(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """What an expression is, where operands of some are brought together from the ranks."""
        parts = [self.latest[part] for part in inner(node) if part in self.latest]
        of_all = [part for part in parts if part.loaders and not part.is_local]
        if node in self.joined_parts:
            value = self.together(value, node, frame)
        elif node in self.joined.calls:
            value = self.of_training(value, frozenset().union(*(part.loaders for part in parts)))
        if of_all and not self.is_followed(node):
            value = self.of_all_and_others(value, node, parts, frame)
            if not self.without_gradients and last_name(node) not in _CUTS:
                value = differentiated(value, of_all)
        self.latest[node] = value
        return value

    def of_all_and_others(self, value: Value, node: ast.expr, parts: Sequence[Value], frame: Frame) -> Value:
        """What an operation makes of what all ranks have, and of something else."""
        given = any(part.whole for part in parts)
        others = [part for part in parts if (part.is_local or local_entries(part)) and not part.whole]
        if not given or not any(part.kind not in ("mean", "sum") or part.host for part in others):
            whole = given and not self.is_number(node)
            loaders = frozenset().union(*(part.loaders for part in parts if part.whole)) if whole else frozenset()
            return replace(value, whole=whole, loaders=value.loaders | loaders)
        if is_changing(node):
            self.problem(frame, node, MIXED)
        mixed = made_of("unknown", parts, reason=MIXED)
        is_operation = isinstance(node, ast.Call | ast.BinOp | ast.Compare | ast.Subscript)
        return replace(mixed, calls=frozenset({node})) if is_operation and all(map(can_be_joined, others)) else mixed

    def is_number(self, node: ast.expr) -> bool:
        """Whether an operation makes one number of all rows, or asks how many there are."""
        name = last_name(node)
        if not isinstance(node, ast.Call):
            return name in _NUMBERS
        losses = [each.name.rpartition(".")[2] for each in self.latest.get(node.func, SAME).things if is_module(each)]
        if name in LOSSES or (losses and all(each in LOSS_CLASSES for each in losses)):
            return all(word.arg != "reduction" or ast.unparse(word.value) != "'none'" for word in node.keywords)
        is_function = bool(self.latest.get(node.func, SAME).only(Library))
        return name in _NUMBERS or (name in _REDUCTIONS and len(node.args) == is_function and not node.keywords)

    def is_followed(self, node: ast.expr) -> bool:
        """Whether a call is one of the program's own functions, whose operations are looked at one by one."""
        called = self.latest.get(node.func, SAME) if isinstance(node, ast.Call) else SAME
        own = (each for each in called.things if isinstance(each, Function | Class | Instance | Module))
        return any(not isinstance(each, Module) or each.cls is not None for each in own)

    def together(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """An operand of such an operation: of all ranks, if it is one of training."""
        quiet, kind = bool(self.without_gradients), value.kind
        even = all(self.status.get(each) == "training" for context in self.contexts for each in context.loaders)
        if not value.is_local or not even or not self.may_join(value.loaders):
            if quiet:
                self.found.apart_quietly.add(node)
            else:
                self.found.apart.setdefault(node, Problem(frame.script, node, _APART))
            return value
        if kind in ADDITIVE and value.host:
            self.demand(node, value, frame)
        elif value.merged:
            return value
        elif kind in ("mean", "sum") or (kind in ("rows", "batch") and self.joined_parts[node] in self.joined.calls):
            reduction = Reduction(frame.script, node, kind if kind in ADDITIVE else "rows")
            self.found.joined.setdefault(node, set()).add(reduction)
            self.found.joined_quietly |= {node} if quiet else set()
        else:
            return value
        whole = kind in ("rows", "batch", "size")  # of a size, what is made to have as many rows
        kept = replace(value, kind="same", made_at=frozenset(), reason="", couples=False, whole=whole)
        return replace(kept, terms=frozenset(), calls=frozenset())

    def of_training(self, value: Value, loaders: frozenset[Loader]) -> Value:
        """What all ranks have computed of the batches of all ranks, in tuples and dicts, too."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.of_training(each, loaders) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.of_training(thing.rest, loaders)
        return replace(value, loaders=value.loaders | loaders)


def has_samples(value: Value) -> bool:
    """Whether something has a row for each sample."""
    return value.kind in LOCAL_ROWS


def can_be_term(value: Value) -> bool:
    """Whether something is a mean or a sum of which a loss is made."""
    return value.kind in ("mean", "sum") and not value.host and not value.merged


def can_be_joined(value: Value) -> bool:
    """Whether something has a row for each sample, or a number for the batch, so that it can be brought together."""
    if local_entries(value) or value.merged:
        return False
    return value.kind in (*ADDITIVE, *LOCAL_ROWS) and value.kind != "picked" and not (value.host and has_samples(value))


def is_module(thing: object) -> TypeGuard[Module]:
    """Whether a thing is a module of torch."""
    return isinstance(thing, Module) and is_network(thing)


def is_unseen(thing: object) -> bool:
    """Whether what a thing computes when it is called is not seen: something of a library, other than torch's own."""
    return is_module(thing) and thing.cls is None and not thing.name.startswith("torch.nn.")


def inner(node: ast.expr) -> list[ast.expr]:
    """The expressions that one is made of; of a call what it is given and whose method it is."""
    if isinstance(node, ast.Call | ast.Subscript):
        return operands(node)
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]


def is_changing(node: ast.expr) -> bool:
    """Whether a call changes what it is given, or asks for its gradients, so that a copy would not do."""
    name = last_name(node) if isinstance(node, ast.Call) else ""
    return (name.endswith("_") and not name.endswith("__")) or name in _OF_GRAPH


def last_name(node: ast.expr) -> str:
    """The name of an attribute, or of what is called."""
    named = node.func if isinstance(node, ast.Call) else node
    return named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
