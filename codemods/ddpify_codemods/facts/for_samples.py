"""Functions that only the data sets of a program's other files call: what they do is done for each sample."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .called_modules import last_name
from .effects import sample_code_of
from .script import KEPT, Script

_ROUNDS = 4  # files that hand on to each other


def for_samples(scripts: Sequence[Script]) -> Mapping[Script, frozenset[str]]:
    """Of each file, the functions that are called on the way to samples of other files, and nowhere else."""
    found = dict.fromkeys(scripts, frozenset[str]())
    for _ in range(_ROUNDS if len(scripts) > 1 else 0):
        called = frozenset().union(*(_called(script, names) for script, names in found.items()))
        if not called:
            break
        others = frozenset().union(*(_named_elsewhere(script, names) for script, names in found.items()))
        again = {script: _functions(script) & called - others for script in scripts}
        if again == found:
            break
        found = again
    return found


@lru_cache(maxsize=KEPT)
def _functions(script: Script) -> frozenset[str]:
    return frozenset(each.name for each in script.tree.body if isinstance(each, ast.FunctionDef))


@lru_cache(maxsize=KEPT)
def _called(script: Script, names: frozenset[str]) -> frozenset[str]:
    """The functions of other files that are called for samples."""
    calls = (each for each in sample_code_of(script, names) if isinstance(each, ast.Call))
    return frozenset(last_name(call.func) for call in calls if "." in script.qualified(call.func))


@lru_cache(maxsize=KEPT)
def _named_elsewhere(script: Script, names: frozenset[str]) -> frozenset[str]:
    """What a file names where it does not make samples."""
    inside = sample_code_of(script, names)
    outside = [each for each in script.find(ast.Name, ast.Attribute) if each not in inside]
    return frozenset(each.id if isinstance(each, ast.Name) else each.attr for each in outside)
