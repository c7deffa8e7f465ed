"""Random numbers that a forward begins to draw after it was divided, such as whether a layer is left out (M4, S2).

A rank draws for its own rows from a stream of its own. What no trial has seen may be meant for all samples at once, and
then has to be the same on every rank. So torch's functions that draw are asked what they drew: a number in which no
samples can lie is drawn again from the common stream; anything else stops the run, before any step is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import rank_stream, region
from .draws import CREATE, FILL, FUSED, LIKE, SAMPLE


def watch() -> None:
    """Look at what torch's functions draw in divided forwards, from now on."""
    if hasattr(Tensor.normal_, "_ddpify"):
        return
    names = [name for name in sorted(CREATE | LIKE | SAMPLE) if hasattr(torch, name)]
    rank_stream.replace_while_drawing({name: _watched(name, getattr(torch, name)) for name in names})
    for name in sorted(FILL):
        setattr(Tensor, f"{name}_", _watched(name, getattr(Tensor, f"{name}_")))


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if not rank_stream.drawing or torch.compiler.is_compiling() or not rank_stream.active():
            return function(*args, **kwargs)
        drawn, here = function(*args, **kwargs), region.current()
        if here is None or not isinstance(drawn, Tensor) or (name, drawn.dim()) in here.drawn:
            return drawn
        if FUSED in here.places and drawn.dim():  # a kernel that is written in Python
            return drawn
        if any(size % here.local == 0 for size in drawn.shape):
            raise RuntimeError(
                f"ddpify: a forward began to draw random numbers ({name}) after it had been divided; let it draw from "
                "its first training step on, or leave it out of DistributedDataParallel"
            )
        with rank_stream.common_random_numbers():
            return function(*args, **kwargs)

    draw._ddpify = True  # type: ignore[attr-defined]
    return draw
