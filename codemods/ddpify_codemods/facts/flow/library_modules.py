"""What the modules of torch.nn make of a batch, where it matters along which dimension its samples lie."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from .bags import is_in_one
from .dimensions import after_module, at_least_after_module, implicit, of_dimensions
from .layout import axis, flattened, over_samples, reshaped
from .operations import mixes
from .packed import is_packed
from .values import COUPLES, OWN_SHAPE, SAME, Items, Kind, Module, Value, entries, made_of, of

_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_STACKS = frozenset({"TransformerEncoder", "TransformerDecoder"})
_ATTENTION = _STACKS | {"Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer"}
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "Module", "DataParallel"})
_SOFTMAX = frozenset({"Softmax", "LogSoftmax", "Softmin"})


def of_library_module(module: Module, given: Sequence[Value]) -> Value | None:
    """What a module gives back for a batch; None where its class does not say that.

    Args:
        module: made by a call of a class of torch.nn. given: what it is called with.
    """
    first = given[0] if given else SAME
    name, layer = module.name, module
    last = name.rpartition(".")[2]
    if last in _STACKS and "layers" in module.attributes:
        layer = next((each for each in module.attributes["layers"].things if isinstance(each, Module)), layer)
    if not name.startswith("torch.nn.") or not isinstance(layer.made, ast.Call) or last in _CONTAINERS:
        return None
    local = [value for value in entries(given) if value.is_local]
    if last in _RECURRENT and is_packed(first):
        return _states(last, module, first, local)
    if first.kind == "picked":  # not as many on each rank, and none of them may be computed with another one
        alike = [replace(each, kind="rows", reason="") if each.kind == "picked" else each for each in given]
        alike[0] = of_dimensions(alike[0], first.dimensions or (2 if is_in_one(first) else None), first.at_least)
        made = of_library_module(module, alike)
        if made is not None and made.reason == COUPLES:
            return made
        return _states(last, module, made_of("picked", local), local) if last in _RECURRENT else None
    if first.kind not in ("batch", "rows", "rows_second", "rows_last", "rows_moved"):
        return None
    kind: Kind = "rows" if first.kind == "batch" else first.kind
    if last in _RECURRENT:
        return _recurrent(last, module, first, kind, local)
    if last in _ATTENTION:
        couples = _runs_over_samples(layer, first)
        made_like = of_dimensions(made_of(kind, local), first.dimensions, 2)
        return made_of("unknown", local, reason=COUPLES) if couples else made_like
    if last == "MultiheadAttention":
        if _runs_over_samples(module, first):
            return made_of("unknown", local, reason=COUPLES)
        return of(Items("tuple", {0: of_dimensions(made_of(kind, local), first.dimensions), 1: made_of("rows", local)}))
    if last in (*_SOFTMAX, "CosineSimilarity", "GLU"):
        dimension = _option(module, "dim", 0)
        if dimension is None and last == "CosineSimilarity":
            dimension = 1
        elif dimension is None and last in _SOFTMAX and first.dimensions is not None:
            dimension = implicit(first.dimensions)
        if dimension is not None and over_samples(kind, dimension, first.dimensions):
            return made_of("unknown", local, reason=COUPLES)
    if mixes(last, kind, first.dimensions):
        return made_of("unknown", local, reason=COUPLES)
    if last == "Flatten":
        start = _option(module, "start_dim", 0)
        if start == "unknown":
            return made_of("unknown", local)
        made_flat = made_of(flattened(kind, 1 if start is None else start), local)
        to_the_end = module.told.keys() <= {0, "start_dim"}
        return of_dimensions(made_flat, {None: 2, 0: 1, 1: 2}.get(start) if to_the_end else None)
    if last == "Unflatten":
        found = reshaped(kind, []) if axis(kind) == 0 and _option(module, "dim", 0) != 0 else "rows_moved"
        return made_of(found, local) if found else made_of("unknown", local, reason=OWN_SHAPE)
    several = "adaptive_softmax" in last.lower()
    dimensions = None if module.is_one_of else after_module(last, first)
    at_least = 0 if module.is_one_of else at_least_after_module(last, first)
    return None if several else of_dimensions(made_of(kind, local), dimensions, at_least)


def _recurrent(last: str, module: Module, first: Value, kind: Kind, local: list[Value]) -> Value:
    """Its outputs, laid out as its inputs, and its hidden state: layers, samples, features."""
    if _runs_over_samples(module, first):
        return made_of("unknown", local, reason=COUPLES)
    outputs = replace(of_dimensions(made_of(kind, local), 3), front=first.front)
    return _states(last, module, outputs, local)


def _states(last: str, module: Module, outputs: Value, local: list[Value]) -> Value:
    front: Literal["one", "layers"] = "one" if _has_one_layer(module) else "layers"
    hidden = replace(of_dimensions(made_of("rows_second", local), 3), front=front)
    state = of(Items("tuple", {0: hidden, 1: hidden})) if last == "LSTM" else hidden
    return of(Items("tuple", {0: outputs, 1: state}))


def _has_one_layer(module: Module) -> bool:
    """Whether a recurrent network has one layer, which goes one way, for all that its call says."""
    layers, ways = _option(module, "num_layers", 2), _option(module, "bidirectional", 6)
    return (
        layers in (None, 1) and ways in (None, 0) and len([each for each in module.told if isinstance(each, int)]) < 4
    )


def _runs_over_samples(module: Module, given: Value) -> bool:
    """Whether a layer takes the dimension of the samples for that of time, as it does of two dimensions."""
    samples = axis(given.kind)
    if given.dimensions == 2 and samples == 0:
        return True
    first = _option(module, "batch_first", -1)
    if first == "unknown":
        return False
    return samples in (0, 1) and samples != (0 if first else 1)


def _option(module: Module, name: str, place: int) -> int | Literal["unknown"] | None:
    """A whole number that a layer is told by its name or its place; None where it is not told any."""
    told = dict(module.told)
    for value in (told.pop("**"),) if "**" in told else ():
        known = [each for each in value.things if isinstance(each, Items) and each.rest is None]
        if len(known) != 1 or len(value.things) > 1:
            return "unknown"
        told |= {key: each for key, each in known[0].known.items() if isinstance(key, str)}
    found = told.get(name, told.get(place))
    if found is None or found.is_none:
        return None
    return found.constant if isinstance(found.constant, int) and not found.things else "unknown"


def told_to(module: Module, name: str) -> bool | None:
    """What a layer of torch is told by a keyword that is true or false: `rnn.batch_first`; None for anything else."""
    if not module.name.startswith("torch.nn.") or not isinstance(module.made, ast.Call):
        return None
    said = [word.value for word in module.made.keywords if word.arg == name and isinstance(word.value, ast.Constant)]
    return said[0].value if said and isinstance(said[0].value, bool) else None
