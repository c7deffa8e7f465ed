"""Copies of the layers of a model, as copy.deepcopy makes them, in a tenth of its time.

A trial computes on four to six copies of a module. Most of what a layer holds are numbers and empty dictionaries, for
each of which deepcopy makes several calls.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from copy import deepcopy
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from ..torch_internals import CALL

_ATOMIC = {
    *(bool, int, float, complex, str, bytes, type(None), type, torch.dtype),
    *(types.FunctionType, types.BuiltinFunctionType),
}
_CONTAINERS = {dict, list, set, OrderedDict}


def is_without_parts(value: Any) -> bool:
    """Whether a value is known to hold nothing that can be copied: a number, a word, a container that is empty."""
    kind = type(value)
    if kind is tuple:
        return all(type(each) in _ATOMIC for each in value)
    return kind in _ATOMIC or (kind in _CONTAINERS and not value)


def copy_layers(module: nn.Module, memo: dict[int, Any]) -> None:
    """Copy the parts of a module that copy.deepcopy would copy by what they hold; memo: as for copy.deepcopy.

    Others, such as recurrent layers and parametrised ones, have a way of their own, and are left to deepcopy.
    """
    for part in reversed(list(module.modules())):
        kind: Any = type(part)
        if id(part) in memo or not _is_usual(kind):
            continue
        memo[id(part)] = made = kind.__new__(kind)
        held = vars(made)
        for name, value in vars(part).items():
            if name == CALL:
                continue
            if not is_without_parts(value):
                held[name] = deepcopy(value, memo)
            elif type(value) in _CONTAINERS:
                held[name] = memo[id(value)] = type(value)()  # the handle of a hook refers to some
            else:
                held[name] = value


@lru_cache(maxsize=1000)
def _is_usual(kind: Any) -> bool:
    """Whether deepcopy copies its objects by what `vars` gives, and nothing more."""
    adds_what_lacks = kind.__setstate__.__module__.startswith("torch.nn.modules.")  # for checkpoints of older torch
    return (
        adds_what_lacks
        and kind.__getstate__ is nn.Module.__getstate__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind.__new__ is object.__new__
        and not hasattr(kind, "__deepcopy__")
    )
