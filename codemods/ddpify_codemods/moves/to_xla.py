"""Programs that are distributed by hand with torch, moved to XLA in its own words, or brought up to date there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..facts import distribution
from ..facts.script import Script
from ..found import ask, ask_program, idle, is_refused, rewritten, trains, untouched
from ..options import ConversionOptions
from ..reading import read
from ..result import ConversionBug, Result, refusal
from ..rule import Edit, Insert, Replace
from ..runtime_names import RUNTIME
from ..targets import Target


def to_xla(
    program: Mapping[Path, str],
    scripts: Sequence[Script],
    target: Target,
    kind: distribution.Kind,
    options: ConversionOptions,
) -> dict[Path, Result]:
    """Move a program to XLA, without ddpify_runtime.

    Args: its texts and its scripts; the target; what the program is distributed with; what else is asked for.
    """
    from ..rules import FOLDERS, in_folders
    from ..styles import in_program

    if options.resume:
        return _refused_resume(program)
    scripts = in_program(scripts)
    has_loop = trains(scripts) or kind == "torch_xla"
    rules = in_folders(*(FOLDERS[kind] if has_loop else ("always",)))
    found = ask_program(scripts, target, rules, options.modernize)
    if any(map(is_refused, found)):
        return untouched(found)
    if not has_loop:
        return idle(found, "no training loop")
    found = [replace(each, edits=tuple((rule, _without_runtime(edit)) for rule, edit in each.edits)) for each in found]
    reason = "" if any(each.edits for each in found) else "XLA code already"
    launch = "python {module}{script}"
    results = {each.script.path: Result(rewritten(each), each.changes, each.findings, reason, launch) for each in found}
    _, again = read({path: result.code for path, result in results.items()})
    modernized = in_folders("modernize")
    stable = bool(reason) or not any(ask(each, target, modernized, True).edits for each in again)
    if distribution.kind(again) != "torch_xla" or not stable:
        raise ConversionBug(f"{again[0].path}: a second conversion would change it again")
    return results


def _without_runtime(edit: Edit) -> Edit:
    """An edit of a rule that is shared with scripts of one process, for a script that does not import the runtime."""
    if not isinstance(edit, (Insert, Replace)):
        return edit
    return replace(edit, modules=tuple(line for line in edit.modules if RUNTIME not in line))


def _refused_resume(program: Mapping[Path, str]) -> dict[Path, Result]:
    """--resume is for what is converted in the exact style: it relies on every rank having the same state."""
    remedy = "convert the script for one device, or save and load in the script"
    return refusal(program, "DDP126", "--resume: this script is distributed by hand already", remedy)
