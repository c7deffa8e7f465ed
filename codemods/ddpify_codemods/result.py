"""What became of a file: its text, what was done, and what a person must know."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from .rule import Change, Finding


@dataclass(frozen=True)
class Result:
    """What became of one file.

    code: its text afterwards. changes: what was done. findings: what a person must know.
    reason: why there was nothing to do ("" otherwise). launch: how to start it, if not as the target's other scripts.
    """

    code: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    launch: str = ""


class ConversionBug(Exception):
    """The rewritten text is not what it must be: a bug of ddpify. Nothing was written."""


def raise_unless_compiled(path: Path, before: str, after: str) -> None:
    """Distrust the outcome: Python must take it, as it took the file (the parser alone lets `from __future__` pass
    anywhere).

    Args: the file, its text, the rewritten one.
    """
    problem = _problem(after)
    if problem is not None and _problem(before) is None:
        raise ConversionBug(f"{path}: the converted file does not compile: {problem.msg} (line {problem.lineno})")


def _problem(text: str) -> SyntaxError | None:
    """Why Python does not compile a text; None where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the author's "\\d" is not our business
            compile(text, "", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    return None


def unchanged(program: Mapping[Path, str], reason: str) -> dict[Path, Result]:
    """The results for a program in which there is nothing to do, and why."""
    return {path: Result(text, reason=reason) for path, text in program.items()}


def refusal(program: Mapping[Path, str], rule: str, message: str, remedy: str) -> dict[Path, Result]:
    """The results for a program that is refused as a whole: its first file says why."""
    finding = Finding(rule, "refused", 1, message, remedy)
    return {path: Result(text, findings=(finding,) * (path == next(iter(program)))) for path, text in program.items()}


def in_turn(
    program: Mapping[Path, str], first: Mapping[Path, Result], second: Mapping[Path, Result]
) -> dict[Path, Result]:
    """The results of two conversions, one after the other."""
    results = {}
    refused = any(each.severity == "refused" for result in second.values() for each in result.findings)
    for path, result in second.items():
        lines = original_lines(program[path], first[path].code)
        findings = (*first[path].findings, *(replace(each, line=lines(each.line)) for each in result.findings))
        if refused:
            results[path] = Result(program[path], findings=findings)
            continue
        changes = (*first[path].changes, *(replace(each, line=lines(each.line)) for each in result.changes))
        results[path] = Result(
            result.code, changes, tuple(sorted(findings, key=attrgetter("line"))), launch=result.launch
        )
    return results


def original_lines(before: str, after: str) -> Callable[[int], int]:
    """What turns a line number of the moved text into one of the file as it is."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()

    def original(line: int) -> int:
        for _, first, last, start, end in blocks:
            if start <= line - 1 < end:
                return min(first + line - 1 - start, max(last - 1, first)) + 1
        return line

    return original
