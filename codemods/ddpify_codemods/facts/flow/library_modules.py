"""What the modules of torch.nn make of a batch, where it matters along which dimension its samples lie."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

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
    name, made = module.name, module.made
    last = name.rpartition(".")[2]
    if last in _STACKS and "layers" in module.attributes:
        made = next((each.made for each in module.attributes["layers"].things if isinstance(each, Module)), made)
    if not name.startswith("torch.nn.") or not isinstance(made, ast.Call) or last in _CONTAINERS:
        return None
    local = [value for value in entries(given) if value.is_local]
    if last in _RECURRENT and is_packed(first):
        return _states(last, made, first, local)
    if first.kind not in ("batch", "rows", "rows_second", "rows_last", "rows_moved"):
        return None
    kind: Kind = "rows" if first.kind == "batch" else first.kind
    if last in _RECURRENT:
        return _recurrent(last, made, first, kind, local)
    if last in _ATTENTION:
        couples = _runs_over_samples(made, kind)
        made_like = of_dimensions(made_of(kind, local), first.dimensions, 2)
        return made_of("unknown", local, reason=COUPLES) if couples else made_like
    if last == "MultiheadAttention":
        if _runs_over_samples(made, kind):
            return made_of("unknown", local, reason=COUPLES)
        return of(Items("tuple", {0: of_dimensions(made_of(kind, local), first.dimensions), 1: made_of("rows", local)}))
    if last in (*_SOFTMAX, "CosineSimilarity"):
        dimension = _option(made, "dim", 0)
        if dimension is None and last == "CosineSimilarity":
            dimension = 1
        elif dimension is None and first.dimensions is not None:
            dimension = implicit(first.dimensions)
        if dimension is not None and over_samples(kind, dimension, first.dimensions):
            return made_of("unknown", local, reason=COUPLES)
    if mixes(last, kind, first.dimensions):
        return made_of("unknown", local, reason=COUPLES)
    if last == "Flatten":
        start = _option(made, "start_dim", 0)
        made_flat = made_of(flattened(kind, 1 if start is None else start), local)
        to_the_end = len(made.args) < 2 and all(word.arg == "start_dim" for word in made.keywords)
        return of_dimensions(made_flat, {None: 2, 0: 1, 1: 2}.get(start) if to_the_end else None)
    if last == "Unflatten":
        found = reshaped(kind, []) if axis(kind) == 0 and _option(made, "dim", 0) != 0 else "rows_moved"
        return made_of(found, local) if found else made_of("unknown", local, reason=OWN_SHAPE)
    several = "adaptive_softmax" in last.lower()
    dimensions = None if module.is_one_of else after_module(last, first)
    at_least = 0 if module.is_one_of else at_least_after_module(last, first)
    return None if several else of_dimensions(made_of(kind, local), dimensions, at_least)


def _recurrent(last: str, made: ast.Call, first: Value, kind: Kind, local: list[Value]) -> Value:
    """Its outputs, laid out as its inputs, and its hidden state: layers, samples, features."""
    if _runs_over_samples(made, kind):
        return made_of("unknown", local, reason=COUPLES)
    outputs = replace(of_dimensions(made_of(kind, local), 3), front=first.front)
    return _states(last, made, outputs, local)


def _states(last: str, made: ast.Call, outputs: Value, local: list[Value]) -> Value:
    front: Literal["one", "layers"] = "one" if _has_one_layer(made) else "layers"
    hidden = replace(of_dimensions(made_of("rows_second", local), 3), front=front)
    state = of(Items("tuple", {0: hidden, 1: hidden})) if last == "LSTM" else hidden
    return of(Items("tuple", {0: outputs, 1: state}))


def _has_one_layer(made: ast.Call) -> bool:
    """Whether a recurrent network has one layer, which goes one way, for all that its call says."""
    words = {word.arg: word.value for word in made.keywords}
    layers = made.args[2] if len(made.args) > 2 else words.get("num_layers", ast.Constant(1))
    ways = words.get("bidirectional", ast.Constant(False))
    known = isinstance(layers, ast.Constant) and isinstance(ways, ast.Constant) and None not in words
    return known and layers.value == 1 and not ways.value and len(made.args) < 4  # type: ignore[attr-defined]


def _runs_over_samples(made: ast.Call, kind: Kind) -> bool:
    """Whether a module takes the dimension of the samples for that of time."""
    first = next((word.value for word in made.keywords if word.arg == "batch_first"), None)
    if first is not None and not isinstance(first, ast.Constant):
        return False
    wanted = 0 if isinstance(first, ast.Constant) and first.value else 1
    samples = axis(kind)
    return samples in (0, 1) and samples != wanted and not any(word.arg is None for word in made.keywords)


def _option(made: ast.Call, name: str, place: int) -> int | None:
    """A whole number that a module is made with; None without."""
    given = [word.value for word in made.keywords if word.arg == name] or made.args[place : place + 1]
    try:
        value = ast.literal_eval(given[0]) if given else None
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def told_to(module: Module, name: str) -> bool | None:
    """What a layer of torch is told by a keyword that is true or false: `rnn.batch_first`; None for anything else."""
    if not module.name.startswith("torch.nn.") or not isinstance(module.made, ast.Call):
        return None
    said = [word.value for word in module.made.keywords if word.arg == name and isinstance(word.value, ast.Constant)]
    return said[0].value if said and isinstance(said[0].value, bool) else None
