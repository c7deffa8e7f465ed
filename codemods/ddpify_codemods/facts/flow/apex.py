"""NVIDIA's apex.amp: a loss is scaled, and gradients are scaled back, and looked at, where its `with` ends."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..script import KEPT, Script
from .values import Items, Library, Module, OptimizerValue, Parameters, Value, of

INITIALIZE = frozenset({"apex.amp.initialize", "apex.amp.frontend.initialize"})
SCALES = frozenset({"apex.amp.scale_loss", "apex.amp.handle.scale_loss"})


def of_apex(name: str, args: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
    """What a function of apex.amp gives: the models and optimizers that it is given, as it changes these themselves; a
    multiple of a loss, the same one on all ranks; the parameters of an optimizer. None for anything else."""
    if name in INITIALIZE:
        given = dict(zip(("models", "optimizers"), args, strict=False)) | keywords
        models, optimizers = given.get("models"), given.get("optimizers")
        if models is None or (optimizers is None and None in given):
            return None
        if optimizers is None or optimizers.is_none:
            return models
        return of(Items("tuple", {0: models, 1: optimizers})) if optimizers.is_none is False else None
    if name in SCALES:
        loss = args[0] if args else keywords.get("loss")
        return None if loss is None else replace(loss, constant=None, zero=False)
    if name == "apex.amp.master_params" and args:
        return of(Parameters(tuple(module for each in _optimizers(args[0]) for module in each.modules)))
    return None


def scaled_for(function: Value, given: Sequence[Value]) -> list[OptimizerValue]:
    """The optimizers whose gradients are looked at where `with amp.scale_loss(loss, optimizer)` ends.

    Args: what is called, and what it is given behind the loss.
    """
    is_scale = any(isinstance(thing, Library) and thing.name in SCALES for thing in function.things)
    return [each for value in given for each in _optimizers(value)] if is_scale else []


def models_given(value: Value) -> set[Module]:
    """The models that amp.initialize is given: one, or those in a list."""
    inner = [entry for thing in value.things if isinstance(thing, Items) for entry in thing.all()]
    return {thing for each in (value, *inner) for thing in each.things if isinstance(thing, Module)}


def _optimizers(value: Value) -> list[OptimizerValue]:
    inner = [entry for thing in value.things if isinstance(thing, Items) for entry in thing.all()]
    return [thing for each in (value, *inner) for thing in each.things if isinstance(thing, OptimizerValue)]


@lru_cache(maxsize=KEPT)
def initializations(script: Script) -> tuple[ast.Call, ...]:
    """Where a file lets apex.amp change models: their parameters get another type, or their forward is another one."""
    return tuple(call for call in script.find(ast.Call) if script.qualified(call.func) in INITIALIZE)


def initializes(script: Script, node: ast.AST, code: str) -> bool:
    """Whether a statement lets apex.amp change a model, in some cases at least.

    Args: the file, the statement, the code of the model.
    """
    calls = [call for call in initializations(script) if node is call or node in script.ancestors(call)]
    given = (
        each for call in calls for each in (*call.args[:1], *(w.value for w in call.keywords if w.arg == "models"))
    )
    return any(code in map(ast.unparse, getattr(each, "elts", [each])) for each in given)
