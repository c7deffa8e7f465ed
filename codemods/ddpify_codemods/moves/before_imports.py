"""Where the process group is joined if other files do what needs it while they are imported (exact style; DDP101)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..facts.at_import import run_at_import
from ..facts.flow.draws import SEED_ALL, SEEDS, draws_from
from ..facts.script import Script
from ..found import Found
from ..rule import ChangeArgument, Edit, Insert, Replace, place_of

_TO_DEVICE = ("cuda", "to")


def joined_above(found: Sequence[Found]) -> ast.stmt | None:
    """The statement at the top of the first file above which the process group has to be joined; None for none.

    Args: what the rules have found in each file of a program, the one that is started first.
    """
    edits = [edit for each in found[1:] for _, edit in each.edits]
    needing = {place_of(edit) for edit in edits if _uses_runtime(edit)}
    seeded: set[str] = set()
    for statement, script, node in run_at_import([each.script for each in found]):
        if node in needing or (isinstance(node, ast.Call) and _needs_group(script, node, seeded)):
            return statement
    return None


def _uses_runtime(edit: Edit) -> bool:
    return isinstance(edit, Replace | Insert | ChangeArgument) and bool(edit.imports)


def _needs_group(script: Script, call: ast.Call, seeded: set[str]) -> bool:
    """Whether a call draws what each rank would draw otherwise, puts something on a device, or prints.

    Args: the file; the call; the libraries whose generators have been seeded before, to which those of the call go.
    """
    name = script.qualified(call.func)
    if name in SEEDS and all(isinstance(each, ast.Constant) and each.value is not None for each in call.args):
        seeded.add(SEEDS[name])
    elif name in SEED_ALL:
        seeded.update(SEEDS.values())
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    moves = method in _TO_DEVICE or any(word.arg == "device" for word in call.keywords)
    return name == "print" or moves or (draws_from(script, call) or "none") not in {"none", *seeded}
