"""The exact style: the conversion of a program for one device to one that imports ddpify_runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..facts.script import Script
from ..facts.trail import lost_trail
from ..found import (
    Found,
    ask,
    ask_program,
    idle,
    is_refused,
    raise_if_unstable,
    refused_at,
    rewritten,
    sketched,
    trains,
    untouched,
)
from ..layout import CALLS, laid_out
from ..options import ConversionOptions
from ..reading import read
from ..result import Result
from ..targets import TARGETS, Target
from ..view import View
from .before_imports import joined_above


def to_exact(
    program: Mapping[Path, str],
    views: Mapping[Path, View],
    scripts: Sequence[Script],
    target: Target,
    options: ConversionOptions,
) -> dict[Path, Result]:
    """Convert the files of one program, or bring up to date what a conversion has left there.

    Args: its texts; what is known of the files that are converted already; its scripts; the target; what else is asked.
    """
    from ..rules import FOLDERS, in_folders  # here, so that a file without work costs no import of them

    has_loop = trains(scripts)
    per_process = bool(options.per_process) and has_loop
    know_each_other = bool(options.resume or options.fully_sharded or per_process)
    target = replace(target, resume=options.resume)
    if know_each_other:
        from ..styles import in_program

        scripts = in_program(scripts, per_process=per_process)
    folders = FOLDERS["one process"] if has_loop else ("always",)
    rules = (*in_folders(*folders), *(in_folders("per_process") if per_process else ()))
    found = ask_program(scripts, target, rules, options.modernize)
    if has_loop and len(found) > 1 and (above := joined_above(found)) is not None:
        scripts = [replace(scripts[0], joined_above=above), *scripts[1:]]
        found = ask_program(scripts, target, rules, options.modernize)
    if any(map(is_refused, found)):
        return untouched(found)
    if not has_loop:
        return _without_loop(found, target, options.modernize)
    reason = "already converted" if scripts[0].path in views and not any(each.edits for each in found) else ""
    launch = target.launch if target.launch != TARGETS[target.name].launch else ""
    text = _laid_out if options.for_writing else sketched
    results = {each.script.path: Result(text(each), each.changes, each.findings, reason, launch) for each in found}
    changed = {path: result.code for path, result in results.items()}
    if options.for_writing and changed != dict(program):
        _, again = read(changed, options.roots)
        again = in_program(again, per_process=per_process) if know_each_other else again
        raise_if_unstable(ask(script, target, rules, options.modernize) for script in again)
    return results


def _laid_out(found: Found) -> str:
    return laid_out(found.script.text, rewritten(found), CALLS)


def _without_loop(found: Sequence[Found], target: Target, modernize: bool) -> dict[Path, Result]:
    """The results for a program in which no training loop was found, or none that could be followed."""
    from ..rules.refuse import already_distributed

    scripts = [each.script for each in found]
    trail = lost_trail(scripts)
    if trail is None:
        return idle(found, "no training loop")
    distributed = [ask(script, target, (already_distributed.RULE,), modernize) for script in scripts]
    return untouched(distributed) if any(each.findings for each in distributed) else refused_at(found, trail)
