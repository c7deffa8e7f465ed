"""Programs that are converted in the exact style, moved to another target or back to one device."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ..facts.script import Script
from ..found import Found, line_of, rewritten
from ..layout import CALLS, joined
from ..reading import parse
from ..result import Result, original_lines
from .converted_file import Move, unused_names


def moved(
    program: Mapping[Path, str],
    moves: Mapping[Path, Move],
    update: Callable[[dict[Path, str]], dict[Path, Result]] | None,
) -> dict[Path, Result]:
    """The results of moving converted files, and of updating them for the target that they were moved to."""
    refused = any(finding.severity == "refused" for move in moves.values() for finding in move.findings)
    if refused:
        return {
            path: Result(text, findings=moves[path].findings if path in moves else ()) for path, text in program.items()
        }
    nothing = Found(Script(Path(), "", ast.Module([], []), False, frozenset()))
    found = dict.fromkeys(program, nothing)
    for path, move in moves.items():
        original = parse(path, program[path])
        found[path] = Found(Script(path, program[path], original, False, frozenset()), move.edits, move.findings)
    texts = {path: rewritten(found[path]) if path in moves else text for path, text in program.items()}
    updated = update(texts) if update else {path: Result(text) for path, text in texts.items()}
    results = {}
    for path, result in updated.items():
        lines = original_lines(program[path], texts[path])
        findings = (*found[path].findings, *(replace(each, line=lines(each.line)) for each in result.findings))
        refused = any(each.severity == "refused" for other in updated.values() for each in other.findings)
        if refused:
            results[path] = Result(program[path], findings=findings)
            continue
        changes = (*found[path].changes, *(replace(each, line=lines(each.line)) for each in result.changes))
        code = result.code
        if path in moves:
            code = _without_unused(path, code) if update else joined(program[path], code, CALLS)
        reason = "" if code != program[path] else "not converted"
        ordered = tuple(sorted(changes, key=lambda change: change.line))
        results[path] = Result(code, ordered, tuple(sorted(findings, key=line_of)), reason, result.launch)
    return results


def _without_unused(path: Path, code: str) -> str:
    tree = parse(path, code)
    return rewritten(Found(Script(path, code, tree, False, frozenset()), tuple(unused_names(tree))))
