"""What asks for the rank before the process group is joined: while a file is imported (DDP601)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..facts.eager import is_move
from ..facts.header import joined_after, runs_early
from ..facts.script import Script
from ..found import Found
from ..plain_words import Words
from ..rule import ChangeArgument, Edit, Finding, Guard, Insert, Replace, place_of
from ..rules.plain.seeds import draws_unseeded
from ..rules.plain.words import REMEDY

_FUNCTIONS = r"\b(from_rank_0|\w+_over_ranks|over_ranks|whole_batch|differentiable_\w+|each_sample_once|every_\w+)\("
_CLASSES = r"\b(DistributedSampler\w*|DistributedDataParallel|ZeroRedundancyOptimizer|fully_shard)\("
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def joined_above(found: Sequence[Found], words: Words, has_devices: bool) -> ast.stmt | None:
    """The statement at the top of the first file above which the process group has to be joined; None for none.

    Args: the files, the first one first; the words of the target; whether a rank has to choose its device first.
    """
    places = [at for each in found for _, at in _early(each, words)]
    for script in (each.script for each in found[1:]):
        calls = [*script.find(ast.Call)]
        prints = (call for call in calls if script.qualified(call.func) == "print")
        placed = (call for call in calls if has_devices and _is_placed(call))
        runs = (runs_early(script, call) for call in (*draws_unseeded(script), *prints, *placed))
        places += [at for at in runs if at is not None]
    return min(places, key=lambda at: at.lineno, default=None)


def _is_placed(call: ast.Call) -> bool:
    """Whether a call puts something on a device, which is that of rank 0 before each rank has chosen its own."""
    return is_move(call) or any(word.arg == "device" for word in call.keywords)


def too_early(found: Found, words: Words) -> Found:
    """A file with a finding for each edit that asks for the rank before the process group is joined."""
    lines = dict.fromkeys(place_of(edit).lineno for edit, _ in _early(found, words))
    message = "this asks for the rank while the file is imported, before the process group is joined"
    refused = (Finding("DDP601", "refused", line, message, f"put it in a function, or {REMEDY}") for line in lines)
    return replace(found, findings=(*found.findings, *refused))


def with_program(scripts: Sequence[Script], statement: ast.stmt) -> list[Script]:
    """The scripts of a program whose process group is joined above a statement."""
    (program,) = {script.program for script in scripts}
    assert program is not None
    joined = program.joining_above(statement)
    return [replace(script, program=joined) for script in scripts]


def _early(found: Found, words: Words) -> Iterator[tuple[Edit, ast.stmt]]:
    """The edits of a file that ask for the rank too early, and what runs their place: a statement of the first file."""
    joined = joined_after(found.script)[0] if found.script.is_entry else None
    for _, edit in found.edits:
        if isinstance(edit, Insert) and edit.at is joined:
            continue  # with what joins the process group
        if _asks(edit, words) and (at := runs_early(found.script, place_of(edit))) is not None:
            yield edit, at


def _asks(edit: Edit, words: Words) -> bool:
    """Whether the code of an edit asks for the rank, or sends something, where it stands."""
    code = _code(edit)
    asked = any(word in code for word in (words.rank, words.world_size))
    return asked or sends(edit, words) or re.search(_CLASSES, code) is not None


def sends(edit: Edit, words: Words) -> bool:
    """Whether the code of an edit waits for other ranks where it stands."""
    code = _code(edit)
    return words.barrier in code or re.search(_FUNCTIONS, code) is not None


def _code(edit: Edit) -> str:
    """The code of an edit that is run where it stands."""
    if isinstance(edit, Insert):
        return "\n".join(ast.unparse(each) for each in ast.parse(edit.code).body if not isinstance(each, _DEFINITIONS))
    if isinstance(edit, Guard):
        return edit.test
    return edit.template if isinstance(edit, Replace | ChangeArgument) else ""
