"""What a run did, said once by rank 0: a block of lines on stderr after the first optimizer steps.

What is noted later follows when the process group is destroyed. A script that was started alone says nothing (E3).
DDPIFY_REPORT=0 is silence, DDPIFY_REPORT=1 adds the details.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

STEPS = 3  # after so many: the first forward is tried, the first batch loaded whole, the second shows what became of it

_notes: dict[str, str] = {}
_said: dict[str, str] = {}
_askers: list[Callable[[], None]] = []
_steps = 0
_hook: Any = None


def note(key: str, text: str, *, detail: bool = False) -> None:
    """Have a line said, once; on rank 0 of several, and nowhere else.

    Args:
        key: what it is about; a later text for the same key replaces the first one, as long as that was not said.
        text: one line. detail: whether it belongs into the long form alone.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1 or dist.get_rank() or (detail and not _is_long()):
        return
    _notes[key] = text
    start()


def ask(function: Callable[[], None]) -> None:
    """Have a function called before anything is said: it may have to note what did not happen."""
    if function not in _askers:
        _askers.append(function)


def start() -> None:
    """Count the optimizer steps from now on."""
    global _hook
    if _hook is None and not _steps:
        _hook = register_optimizer_step_post_hook(_step)


def finish() -> None:
    """At the end: say what is left."""
    global _hook, _steps
    if dist.is_initialized() and dist.get_rank() == 0:
        _say()
    if _hook is not None:
        _hook.remove()
    _hook, _steps = None, 0
    for noted in (_notes, _said):
        noted.clear()


def _step(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _steps  # the hook stays: torch is going through all of them, and a script may have one
    if _steps >= STEPS or not dist.is_initialized() or dist.get_rank():
        return
    _steps += 1
    if _steps == STEPS:
        _say()


def _say() -> None:
    for function in _askers:
        function()
    before = {*_said.values()}  # of a loader that is made anew in each epoch, too
    new = {key: text for key, text in _notes.items() if text not in before}
    if not new or os.environ.get("DDPIFY_REPORT") == "0":
        return
    heading = [] if _said else [f"one training on {dist.get_world_size()} processes"]
    _said.update(new)
    print(
        *(f"ddpify: {line}" for line in [*heading, *dict.fromkeys(new.values())]), sep="\n", file=sys.stderr, flush=True
    )


def _is_long() -> bool:
    return os.environ.get("DDPIFY_REPORT", "") not in ("", "0")
