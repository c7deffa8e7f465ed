"""What a forward keeps of its samples in attributes of its module, such as the attention that it has computed.

It is divided as an output is: each rank keeps its rows, which are joined where somebody reads them. Only what no code
of the model reads: a state that the next forward goes on with is of all samples.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch import Tensor, nn

from . import model_code

Attribute: TypeAlias = tuple[str, str]  # the name of a part of the module, and of its attribute

KEEPS = "it keeps"
_NOT_MADE_YET = object()
# By which any attribute may be read; retain_grad keeps gradients of rows, which would not be those of what is joined.
_SEES_ANY = ("getattr", "vars", "__dict__", "attrgetter", "__getattribute__", "retain_grad")


class NotKept(Exception):
    """A forward keeps no tensor where another one has kept one."""


def attributes(module: nn.Module) -> dict[Attribute, Any]:
    """What the parts of a module hold, but for parameters, buffers and parts."""
    parts = module.named_modules()
    return {(name, key): value for name, part in parts for key, value in vars(part).items() if key[:1] != "_"}


def made_since(before: dict[Attribute, Any], module: nn.Module) -> tuple[Attribute, ...]:
    """The attributes that a forward has given tensors with rows, if the code of the model reads none of these."""
    made = [
        key
        for key, value in attributes(module).items()
        if isinstance(value, Tensor) and value.dim() and value is not before.get(key)
    ]
    return () if _read(module) & {*_SEES_ANY, *(name for _, name in made)} else tuple(made)


def places(module: nn.Module, kept: Sequence[Attribute]) -> list[tuple[dict[str, Any], str]]:
    """Where the parts of a module, or of a copy, hold some attributes."""
    return [(vars(module.get_submodule(part)), name) for part, name in kept]


def given_and_kept(module: nn.Module, kept: Sequence[Attribute], call: Callable[[], Any]) -> Any:
    """What a call of a copy gives, and what it keeps, if it does.

    Raises:
        NotKept: it does not keep all of it.
    """
    held = places(module, kept)
    for attributes, name in held:
        attributes[name] = _NOT_MADE_YET
    output = call()
    if not held:
        return output
    values = [attributes.pop(name) for attributes, name in held]
    if not all(isinstance(value, Tensor) for value in values):
        raise NotKept
    return output, values


def _read(module: nn.Module) -> set[str]:
    """The attributes that the code of a module reads, and what it calls."""
    loads = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME")
    steps = (each for code in model_code.codes(module) for each in dis.get_instructions(code))
    return {each.argval for each in steps if each.opname in loads}
