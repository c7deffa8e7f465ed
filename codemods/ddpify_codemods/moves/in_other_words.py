"""Programs that conversions have written in other words than those of torch: what leads on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..facts import distribution, plain_code
from ..facts.script import Script
from ..options import ONE_DEVICE, ConversionOptions
from ..plain_words import TORCH
from ..result import Result, refusal
from ..targets import TARGETS, Target


def written_for(scripts: Sequence[Script]) -> Target | None:
    """The target of a program in the plain style, in words of its own; None for any other program."""
    if not plain_code.silences_others(scripts[0]):
        return None
    if distribution.kind(scripts) == "torch_xla":
        return next(each for each in TARGETS.values() if each.retargets == "own")
    others = (each for each in TARGETS.values() if each.words is not TORCH)
    return next((each for each in others if distribution.speaks(scripts, each.words)), None)


def refused_there(
    program: Mapping[Path, str], scripts: Sequence[Script], options: ConversionOptions
) -> dict[Path, Result]:
    """Refuse what is asked of such a program and cannot be done; nothing where it can, or for any other program."""
    target = written_for(scripts)
    if target is None:
        return {}
    if not options.target or options.target == target.name:
        if options.style != "exact" and not _is_another(scripts, target, options):
            return {}
    elif target.words.averaging and options.target != ONE_DEVICE and options.style != "exact":
        return {}  # torch's words for it are known
    name = "torch_xla" if target.words is TORCH else target.words.name
    message = f"a conversion has distributed it with {name} already, whose words are not taken back"
    remedy = "take its one-process form from version control, and convert that"
    return refusal(program, "DDP302", message, remedy)


def _is_another(scripts: Sequence[Script], target: Target, options: ConversionOptions) -> bool:
    """Whether options ask for another program than there is."""
    words, text = target.words, "\n".join(script.text for script in scripts)
    divides = f"// {words.world_size}" in text
    per_process = f"* {words.world_size}" in text if words.loader else not divides
    synchronized = bool(words.synchronized) and words.synchronized in text
    sizes_differ = options.per_process is not None and options.per_process != per_process
    return sizes_differ or (options.sync_batchnorm and not synchronized)
