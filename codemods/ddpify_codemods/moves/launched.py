"""Programs by hand that start their own processes, made such that a launcher starts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..facts.launch import spawns
from ..facts.script import Script
from ..found import ask, is_refused, trains, untouched
from ..plain_words import HOROVOD
from ..reading import read
from ..result import Result, in_turn
from ..targets import Target
from .results import results_of
from .to_backend import on_other_backend
from .to_plain import in_other_words


def launched(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, roots: Sequence[Path], backend: str
) -> dict[Path, Result]:
    """Let a target's launcher start what a program starts itself, and move that on; nothing for any other program."""
    from ..rules import in_folders

    if not trains(scripts) or not any(map(spawns, scripts)):
        return {}
    found = [ask(script, target, in_folders("always", "from_spawn"), False) for script in scripts]
    if any(map(is_refused, found)):
        return untouched(found)
    first = results_of(found, target.launch)
    texts = {path: result.code for path, result in first.items()}
    _, again = read(texts, tuple(roots))
    if target.words is HOROVOD:
        second = in_other_words(texts, again, target, "to_horovod")
    else:
        second = on_other_backend(texts, again, target, roots, backend)
    return in_turn(program, first, second) if second else first
