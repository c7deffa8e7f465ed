"""torch.compile beside a divided training forward.

A model is often compiled after it was routed, which would trace past its routed call. So what torch.compile makes of
a routed module is routed too, and `module.compile()` changes what the routed call calls. Trials compute without
compiling: on copies, under modes that see every operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from types import MethodType
from typing import Any

import torch
from torch import nn

from ..torch_internals import CALL, compiles, is_compiled_wrapper, original_of, uncompiled
from .layer_copies import copy_layers

_times = 0


def times() -> int:
    """How often something was compiled: a module may be another one since."""
    return _times


def follow(compiled: Callable[[nn.Module, nn.Module], None], in_place: Callable[[Any, Any], bool]) -> None:
    """Be told of every torch.compile of a module, and of every `module.compile()`, from now on.

    Args:
        compiled: gets a module and what was made of it.
        in_place: gets what stood in the way of a module's call, and its compiled call; says whether the former stays.
    """
    if hasattr(torch.compile, "_ddpify"):
        return
    make: Callable[..., Any] = torch.compile
    make_in_place: Callable[..., None] = nn.Module.compile

    @functools.wraps(make)
    def compile(model: Any = None, **options: Any) -> Any:
        global _times
        _times += 1
        made = make(model, **options)
        if isinstance(model, nn.Module) and made is not model:
            compiled(model, made)
        return made

    @functools.wraps(make_in_place)
    def compile_in_place(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        before = vars(self).get(CALL)
        make_in_place(self, *args, **kwargs)
        if in_place(before, vars(self)[CALL]):
            vars(self)[CALL] = before

    compile._ddpify = True  # type: ignore[attr-defined]
    torch.compile = compile
    nn.Module.compile = compile_in_place  # type: ignore[method-assign]


def eagerly() -> AbstractContextManager[Any]:
    """Compute without compiling what torch.compile was asked to."""
    if not compiles():
        return nullcontext()
    eager: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return eager


def is_compiled(module: nn.Module) -> bool:
    """Whether a module or a part of it was compiled."""
    return any(is_compiled_wrapper(part) or any(map(original_of, _calls(part))) for part in module.modules())


def copied(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    """A deep copy that computes the same without torch.compile; memo: as for copy.deepcopy."""
    for part in reversed(list(module.modules())):
        if is_compiled_wrapper(part):
            memo[id(part)] = deepcopy(uncompiled(part), memo)
    copy_layers(module, memo)
    made = deepcopy(module, memo)
    for part in made.modules():
        original = original_of(vars(part).get("forward"))
        if isinstance(original, MethodType) and isinstance(original.__self__, nn.Module):
            vars(part)["forward"] = MethodType(original.__func__, part)
    return made


def _calls(module: nn.Module) -> tuple[Any, Any]:
    call = vars(module).get(CALL)
    return module.forward, getattr(call, "call", call)
