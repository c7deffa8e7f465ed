"""Programs that are distributed by hand with torch, moved to another of its backends."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..facts.script import Script
from ..facts.trail import Lost
from ..found import ask, is_refused, raise_if_unstable, refused_at, rewritten, trains, untouched
from ..reading import read
from ..result import Result, in_turn
from ..targets import TARGETS, Target


def on_other_backend(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, roots: Sequence[Path], backend: str
) -> dict[Path, Result]:
    """Move a program that is distributed by hand to a target's backend and devices; nothing for one that is there."""
    from ..facts.backends import spoken, with_backend_of
    from ..facts.started import starts_of_group
    from ..rules import in_folders

    if not trains(scripts):
        return {}
    target = target if backend else with_backend_of(scripts, target)
    source = spoken(scripts)
    if source is not None and not source.has_cuda_words and not target.is_accelerator:
        by_way_of = next(each for each in TARGETS.values() if each.has_cuda_words)
        first = on_other_backend(program, scripts, by_way_of, roots, by_way_of.backend)
        if any(map(is_refused, first.values())):
            return first
        texts = {path: result.code for path, result in first.items()}
        return in_turn(program, first, on_other_backend(texts, read(texts, tuple(roots))[1], target, roots, backend))
    rules = in_folders("always", "lint", "backend", *(("onto_accelerator",) if source is None else ()))
    found = [ask(script, target, rules, False) for script in scripts]
    if not any(each.edits for each in found):
        return {}
    if any(map(is_refused, found)):
        return untouched(found)
    if source is None and target.module and (unmoved := _unmoved(scripts, target)) is not None:
        return refused_at(found, unmoved)
    launch = "python {module}{script}" if any(map(starts_of_group, scripts)) else _launch(scripts, target)
    results = {each.script.path: Result(rewritten(each), each.changes, each.findings, launch=launch) for each in found}
    _, again = read({path: result.code for path, result in results.items()}, tuple(roots))
    still = in_folders("backend", *(("onto_accelerator",) if spoken(again) is None else ()))
    raise_if_unstable(ask(script, target, still, False) for script in again)
    return results


def in_words_of_gpus(
    program: Mapping[Path, str], scripts: Sequence[Script], roots: Sequence[Path]
) -> dict[Path, Result]:
    """Name GPUs where a program that is distributed by hand names other accelerators; nothing for any other program."""
    from ..facts.backends import spoken

    source = spoken(scripts)
    if source is None or source.has_cuda_words:
        return {}
    cuda = next(each for each in TARGETS.values() if each.has_cuda_words)
    return on_other_backend(program, scripts, cuda, roots, cuda.backend)


def _unmoved(scripts: Sequence[Script], target: Target) -> Lost | None:
    """The place where a program on the CPU joins its group, where no wrapper shows the model that has to be moved."""
    from ..facts.backends import joins
    from ..facts.eager import is_wrapper_call

    calls = [(script, call) for script in scripts for call in script.find(ast.Call)]
    if any(is_wrapper_call(script, call) for script, call in calls):
        return None
    message = f"no model is wrapped, so that it is not seen what has to go to the {target.name} device"
    remedy = "wrap it in DistributedDataParallel, in the place of averaging by hand"
    places = (Lost(script, call.lineno, message, remedy, "DDP225") for script in scripts for call in joins(script))
    return next(places, None)


def _launch(scripts: Sequence[Script], target: Target) -> str:
    """How the program is started: by mpirun as before, where it reads what that says."""
    from ..facts.launcher_environment import of_other_launcher

    read = {of_other_launcher(node) for script in scripts for node in script.nodes} - {""}
    by_mpirun = any(not name.startswith("SLURM_") for name in read)
    launches = (each.launch for each in TARGETS.values() if each.plain_environment)
    return next(launches, target.launch) if by_mpirun and not target.plain_environment else target.launch
