"""Gradients of samples by torch.autograd.grad: those of a penalty, of an attack (HAZARDS L14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..script import KEPT, Script
from .layout import axis
from .values import LOCAL_ROWS, Items, Kind, Value, cut, made_of, of

SCALED = "it is a gradient of a mean over this rank's samples, in which each counts for more than in one of all"
# Layers by which the gradient of an input depends on what is added before.
BENDS = frozenset({"Sigmoid", "Tanh", "Softplus", "Softmax", "LogSoftmax", "LogSigmoid", "ELU", "GELU", "SiLU", "Mish"})
_KEEPING = frozenset({"detach", "data", "clone", "cpu", "cuda", "to", "float", "double", "half", "contiguous"})
_SIGNS = frozenset({"sign", "sgn"})


def gradients_of(outputs: Value, inputs: Value, weights: Value | None, graph: bool) -> Value | None:
    """What autograd.grad gives for samples; None where not all of the inputs are samples.

    Args:
        outputs: what is differentiated. inputs: with respect to what. weights: grad_outputs. graph: whether the
            gradients can be differentiated again.

    The gradient of something that each sample has by itself, or of a sum over them, is something that each has; that
    of a mean is divided by the number of samples.
    """
    several = [thing for thing in inputs.things if isinstance(thing, Items)]
    parts = several[0].all() if len(several) == 1 and several[0].shape in ("tuple", "list") else [inputs]
    if not parts or not all(each.kind in LOCAL_ROWS and axis(each.kind) == 0 for each in parts):
        return None
    by_sample = outputs.kind in ("batch", "rows") and (weights is not None and weights.kind in ("batch", "rows"))
    alone = weights is None or (not weights.is_local and not weights.things)
    kind: Kind = "rows" if by_sample or (outputs.kind == "sum" and alone) else "scaled"
    if kind == "scaled" and not (outputs.kind == "mean" and alone):
        return None
    made = [made_of(kind, [each, outputs], reason=SCALED if kind == "scaled" else "") for each in parts]
    made = [replace(each, slopes=each.forwards) for each in made] if graph else [cut(each) for each in made]
    return of(Items("tuple", dict(enumerate(made))))


def of_scaled(name: str, value: Value, given: Sequence[Value] = ()) -> Value:
    """What a method or function makes of a gradient of a mean: its signs are those of one of all samples."""
    if not any(each.is_local for each in given):
        if name in _SIGNS:
            return made_of("rows", [Value("rows", value.loaders, value.forwards, value.bypasses)])
        if name in _KEEPING:
            return cut(value) if name in ("detach", "data") else value
    return made_of("unknown", [value, *given], reason=SCALED)


@lru_cache(maxsize=KEPT)
def learns_samples(script: Script) -> bool:
    """Whether a file may ask for gradients of samples, through all that is computed of them."""
    return bool(
        re.search(r"requires_grad_\((?!False)|requires_grad *= *(?!False)|autograd\.grad|retain_grad", script.text)
    )
