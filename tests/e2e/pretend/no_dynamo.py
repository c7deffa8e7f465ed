"""Spares the import of torch.compile's front end, which costs more than the whole of a small training (2.5 s of 4).

Optimizer.step and DistributedDataParallel import `torch._dynamo` only to tell it what not to compile. A script that
does compile, or checkpoints activations, needs the real one: `compile = true` in its fixture.toml.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any


def install() -> None:
    """Put an empty stand-in where torch looks for `torch._dynamo`."""
    import torch

    module = ModuleType("torch._dynamo")
    module.__dict__.update(
        graph_break=lambda *args, **kwargs: None,
        disable=_as_it_is,
        set_stance=lambda stance: nullcontext(),  # torch.compiler.set_stance calls it
        utils=SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer"),
        trace_rules=SimpleNamespace(clear_lru_cache=lambda: None),
        __getattr__=_missing,
    )
    sys.modules["torch._dynamo"] = module
    torch._dynamo = module


def _as_it_is(fn: Any = None, recursive: bool = True, wrapping: bool = True, **kwargs: Any) -> Any:
    return fn if fn is not None else _as_it_is


def _missing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"torch._dynamo.{name} is not there: set `compile = true` in fixture.toml")
