"""Looks for files by which ranks decide whether they are written: a faster rank may have written them already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.effects import effects, sample_code
from ...facts.header import is_in_group
from ...facts.script import Script
from .files import makes_folder
from .words import program_of

_LOOKS = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir", "lexists", "getsize"})


def decisive_looks(script: Script) -> Iterator[ast.Call]:
    """The calls that look for a file, by which all ranks together come to where rank 0 writes, or do not.

    The ranks do not look at the same time: `if not os.path.exists(cache): torch.save(…, cache)` would let a rank that
    is slower pass by a barrier at which the others wait.
    """
    of_samples = sample_code(script)
    writers, writing = _writers(script), _writing(script)
    for branch in script.find(ast.If):
        inside = (part for each in (*branch.body, *branch.orelse) for part in ast.walk(each))
        calls = (part for part in inside if isinstance(part, ast.Call))
        if not any(call in writers or last_name(call.func) in writing for call in calls):
            continue
        looks = [
            part for part in ast.walk(branch.test) if isinstance(part, ast.Call) and last_name(part.func) in _LOOKS
        ]
        for call in looks:
            if call not in of_samples and is_in_group(script, call) and _is_met_by_all(script, call):
                yield call


def _writers(script: Script) -> set[ast.Call]:
    return {call for call in effects(script) if not makes_folder(script, call)}


def _writing(script: Script) -> set[str]:
    """The names of the program's functions that write something."""
    around = (
        parent for each in program_of(script).scripts for call in _writers(each) for parent in each.ancestors(call)
    )
    return {parent.name for parent in around if isinstance(parent, ast.FunctionDef)}


def _is_met_by_all(script: Script, call: ast.Call) -> bool:
    """Whether all ranks come to a call equally often."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Lambda | ast.comprehension | ast.While):
            return False
        if isinstance(parent, ast.For) and not ast.unparse(parent.iter).startswith("range("):
            return False
        if isinstance(parent, ast.FunctionDef):
            return True
    return True
