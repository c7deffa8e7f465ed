"""Programs that are distributed by hand in eager mode: which way each of them goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..facts import distribution
from ..facts.script import Script
from ..found import is_refused, trains
from ..options import ConversionOptions, Convert
from ..plain_words import HOROVOD, TORCH
from ..result import Result, in_turn
from ..targets import Target


def in_words_of_torch(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, options: ConversionOptions, convert: Convert
) -> dict[Path, Result]:
    """Move what speaks of Horovod, or of a device that only torch's words for GPUs lead on from; nothing for any other
    program.

    Args: its texts and its scripts; the target; what is asked for; what converts the outcome further.
    """
    kind = distribution.kind(scripts)
    speaks_horovod = target.words is not HOROVOD and distribution.speaks(scripts, HOROVOD)
    if speaks_horovod and kind == "one process" and trains(scripts):
        from .to_torch import from_horovod

        return from_horovod(program, scripts, target, options, convert)
    if kind != "eager" or (target.words is TORCH and target.retargets != "own"):
        return {}
    from .to_backend import in_words_of_gpus

    first = in_words_of_gpus(program, scripts, options.roots)
    if not first or any(map(is_refused, first.values())):
        return first
    texts = {path: result.code for path, result in first.items()}
    further = ConversionOptions(target.name, style=options.style, roots=options.roots)
    return in_turn(program, first, convert(texts, further))


def moved_by_hand(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, options: ConversionOptions
) -> dict[Path, Result]:
    """Move a program to the launcher, the words or the backend of a target; nothing for one that stays as it is there.

    Args: as for `in_words_of_torch`.
    """
    roots, backend = options.roots, options.backend
    if target.retargets != "own" and (options.entry == "torchrun" or not target.processes):
        from .launched import launched

        moved = launched(program, scripts, target, roots, backend)
        if moved:
            return moved
    if target.words is HOROVOD and trains(scripts):
        from .to_plain import in_other_words

        return in_other_words(program, scripts, target, "to_horovod")
    if target.retargets == "backend":
        from .to_backend import on_other_backend

        return on_other_backend(program, scripts, target, roots, backend)
    return {}
