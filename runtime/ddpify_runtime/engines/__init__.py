"""What owns a device and runs its collectives: torch itself, or another engine. Which one it is, is asked here alone.

An engine is a file or a folder here with the name of its backend, which is the type of its devices too. It holds an
`ENGINE`: an object of `native.Engine`, or of a class made of it that says what is otherwise. Nothing else has to know.
"""

from __future__ import annotations

from importlib import import_module, util
from typing import cast

import torch

from . import native

_known: dict[str, native.Engine] = {}
_here = native.ENGINE


def named(name: str) -> native.Engine:
    """The engine of a backend or of a type of devices; torch's own where it has no file here."""
    if name not in _known:
        is_here = name.isidentifier() and util.find_spec(f"{__name__}.{name}") is not None
        _known[name] = cast("native.Engine", import_module(f"{__name__}.{name}").ENGINE) if is_here else native.ENGINE
    return _known[name]


def of(device: torch.device) -> native.Engine:
    """The engine of a tensor's device."""
    return named(device.type)


def use(name: str) -> native.Engine:
    """The engine of this process from now on is the one of this backend."""
    global _here
    _here = named(name)
    return _here


def here() -> native.Engine:
    """The engine of this process."""
    return _here
