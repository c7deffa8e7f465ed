"""A module whose parameters are divided over the ranks, and a module with the whole of them for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..torch_internals import contents


def is_sharded(tensor: Any) -> bool:
    """Whether a rank has a part of a tensor; asked without importing torch's DTensor, which takes a second."""
    return hasattr(tensor, "full_tensor")


@contextmanager
def whole(module: nn.Module) -> Iterator[None]:
    """Give a module the whole of its parameters, to try things on copies of it. A collective."""
    places = [
        (part, name, parameter)
        for part in module.modules()
        for name, parameter in contents(part)[0].items()
        if is_sharded(parameter)
    ]
    with torch.no_grad():
        made = {id(each): each for _, _, each in places}
        made = {key: nn.Parameter(each.full_tensor(), each.requires_grad) for key, each in made.items()}  # type: ignore
    for part, name, parameter in places:
        setattr(part, name, made[id(parameter)])  # past nn.Module's, recurrent layers keep them elsewhere too
    try:
        yield
    finally:
        for part, name, parameter in places:
            setattr(part, name, parameter)
