"""Which line of a program has called torch."""

from __future__ import annotations

import sys
from types import FrameType

from torch.overrides import handle_torch_function

_RUNTIME = "ddpify_runtime."
# What lies between a draw and the line of the program that asks for it.
_BETWEEN = _RUNTIME, "torch._", "torch.utils.", "torch.overrides", "torch.nn.functional", "torch.nn.modules."
_WITH_PARTS = "torch.nn.modules.transformer", "torch.nn.modules.activation"
_CALLS = {f"{_RUNTIME}forward.routed_call", f"{_RUNTIME}forward.division", f"{_RUNTIME}trial.attempt"}
_DEPTH = 4  # lines by which a draw is known: a layer of dropout may be called by a function of its own


def caller() -> FrameType:
    """The frame of the program that called torch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _name(frame).startswith(_RUNTIME):
        frame = frame.f_back
    if frame.f_code is handle_torch_function.__code__:  # of a function of torch that is written in Python
        frame = frame.f_back.f_back  # type: ignore[assignment,union-attr]
    return frame


def line_of_draw() -> str:
    """The line that draws, and those that lead to it from where the runtime calls the program.

    Layers of torch that have parts are looked into.
    """
    frame: FrameType | None = sys._getframe(1)
    lines: list[str] = []
    while frame is not None and len(lines) < _DEPTH:
        name = _name(frame)
        if name in _CALLS:
            break
        if not name.startswith(_BETWEEN) or name in _WITH_PARTS:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_lasti}")
        frame = frame.f_back
    return " ".join(lines)


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
