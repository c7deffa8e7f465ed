"""Programs that are distributed by hand with Horovod, moved to torch's DistributedDataParallel and on to any target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..facts.script import Script
from ..found import ask_program, is_refused, untouched
from ..options import ConversionOptions, Convert
from ..reading import read
from ..result import Result, in_turn
from ..rule import Finding
from ..targets import Target
from .results import results_of
from .to_backend import on_other_backend


def from_horovod(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, options: ConversionOptions, convert: Convert
) -> dict[Path, Result]:
    """Write a program in torch's words, and move it to a target as one that was written by hand for torch."""
    from ..rules import in_folders
    from ..styles import in_program

    scripts = in_program(scripts)
    found = ask_program(scripts, target, in_folders("always", "from_horovod"), modernize=False)
    if any(map(is_refused, found)):
        return untouched(found)
    first = results_of(found, target.launch)
    texts = {path: result.code for path, result in first.items()}
    _, again = read(texts, options.roots)
    left = {script.path: line for script in again if (line := _imports_horovod(script))}
    if left:
        message = "something of Horovod is used here in a way that is not known"
        finding = Finding("DDP646", "refused", 1, message, "take it out, or write it as Horovod's examples do")
        return {path: Result(text, findings=(finding,) * (path in left)) for path, text in program.items()}
    if target.retargets == "backend":
        second = on_other_backend(texts, again, target, options.roots, options.backend)
    else:
        second = convert(texts, ConversionOptions(target.name, roots=options.roots))
    return in_turn(program, first, second) if second else first


def _imports_horovod(script: Script) -> int:
    """The line of an import of Horovod; 0 where there is none."""
    names = ((node.lineno, alias.name) for node in script.imports for alias in node.names)
    modules = ((node.lineno, getattr(node, "module", None) or "") for node in script.imports)
    return next((line for line, name in (*names, *modules) if name.partition(".")[0] == "horovod"), 0)
