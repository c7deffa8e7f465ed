"""What a forward keeps of its samples in attributes of its module, such as the attention that it has computed.

It is divided as an output is: each rank keeps its rows, which are joined where somebody reads them. That holds where
every forward makes it anew; a state that the next forward goes on with is seen in a trial, which puts something else in
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch import Tensor, nn

Attribute: TypeAlias = tuple[str, str]  # the name of a part of the module, and of its attribute

KEEPS = "it keeps"
_NOT_MADE_YET = object()


def attributes(module: nn.Module) -> dict[Attribute, Any]:
    """What the parts of a module hold, but for parameters, buffers and parts."""
    parts = module.named_modules()
    return {(name, key): value for name, part in parts for key, value in vars(part).items() if key[:1] != "_"}


def made_since(before: dict[Attribute, Any], module: nn.Module) -> tuple[Attribute, ...]:
    """The attributes that a forward has given tensors with rows, which it has not changed in place."""
    return tuple(
        key
        for key, value in attributes(module).items()
        if isinstance(value, Tensor) and value.dim() and value is not before.get(key)
    )


def places(module: nn.Module, kept: Sequence[Attribute]) -> list[tuple[dict[str, Any], str]]:
    """Where the parts of a module, or of a copy, hold some attributes."""
    return [(vars(module.get_submodule(part)), name) for part, name in kept]


def given_and_kept(module: nn.Module, kept: Sequence[Attribute], call: Callable[[], Any]) -> Any:
    """What a call of a copy gives, and what it keeps, if it does; it finds nothing there that an earlier call kept."""
    held = places(module, kept)
    for attributes, name in held:
        attributes[name] = _NOT_MADE_YET
    output = call()
    return (output, [attributes.pop(name) for attributes, name in held]) if held else output
