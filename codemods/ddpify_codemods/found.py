"""What rules say about the files of a program, and the texts with their edits."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from .facts.distribution import unused_code
from .facts.header import main_guard
from .facts.ignores import ignored
from .facts.optimizers import optimizers
from .facts.reach import reaches_backward, run_alone
from .facts.script import KEPT, Script
from .facts.trail import Lost, computes_gradients
from .reading import SourceError, parse
from .result import ConversionBug, Result
from .rule import Change, Delete, Edit, Finding, Rule, place_of
from .targets import Target
from .view import missing


@dataclass(frozen=True, eq=False)
class Found:
    """What the rules say about one script."""

    script: Script
    edits: tuple[tuple[str, Edit], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        changes = (Change(rule, line_of(edit), edit.message) for rule, edit in self.edits if edit.message)
        return tuple(sorted(changes, key=lambda change: change.line))


@lru_cache(maxsize=KEPT)
def ask(script: Script, target: Target, rules: tuple[Rule, ...], modernize: bool) -> Found:
    """What some rules say about a file, asked once for all programs that share it."""
    edits: list[tuple[str, Edit]] = []
    findings: list[Finding] = []
    switched_off = ignored(script.text)
    for rule in rules:
        for item in _said(script, target, rule):
            if switched_off.get(line_of(item), frozenset()) & {rule.id, ""}:
                if not isinstance(item, Finding) or not item.distributed:
                    continue
                item = replace(item, remedy="no ignore[…] switches this off; # ddpify: skip-file can")
            if isinstance(item, Finding):
                findings.append(item)
            elif modernize or rule.folder != "modernize":
                edits.append((rule.id, item))
            elif item.message:
                remedy = "rewrite it with --modernize"
                findings.append(Finding(rule.id, "warning", line_of(item), item.message, remedy))
    if script.view is not None:
        edits = missing(script.view, edits)
    never, unused = _never_started(script), unused_code(script)
    edits = [(rule, edit) for rule, edit in edits if line_of(edit) not in never and place_of(edit) not in unused]
    unseen = {edit.at.lineno for _, edit in edits if isinstance(edit, Delete)} | never
    shown = (finding for finding in dict.fromkeys(findings) if finding.line not in unseen)
    return Found(script, tuple(edits), tuple(sorted(shown, key=line_of)))


@lru_cache(maxsize=64 * KEPT)
def _said(script: Script, target: Target, rule: Rule) -> tuple[Edit | Finding, ...]:
    """What one rule says about a file, which different sets of rules have in common."""
    return tuple(rule.check(script, target))


def ask_program(scripts: Sequence[Script], target: Target, rules: tuple[Rule, ...], modernize: bool) -> list[Found]:
    """What some rules say about each file of a program, and about all of them."""
    found = [ask(script, target, rules, modernize) for script in scripts]
    others: list[tuple[Script, Finding]] = []
    for rule in rules:
        if rule.check_program is not None:
            edits = [edit for each in found for name, edit in each.edits if name == rule.id]
            others += rule.check_program(scripts, target, edits)
    others = [
        (script, each)
        for script, each in others
        if not ignored(script.text).get(each.line, frozenset()) & {each.rule, ""}
    ]
    if any(map(is_refused, found)) or any(each.severity == "refused" for _, each in others):
        # the rest is of what is written
        others = [(script, each) for script, each in others if each.severity == "refused"]
    return [
        replace(
            each,
            findings=tuple(
                sorted((*(finding for script, finding in others if script is each.script), *each.findings), key=line_of)
            ),
        )
        for each in found
    ]


def is_refused(found: Found | Result) -> bool:
    """Whether anything in a file refuses the conversion."""
    return any(finding.severity == "refused" for finding in found.findings)


def _never_started(script: Script) -> set[int]:
    """The lines of a module that another file imports which run when it is started itself alone: those below
    `if __name__ == "__main__":`, and functions that only these call."""
    guard = None if script.is_entry else main_guard(script.tree)
    alone: list[ast.AST] = [guard] if guard is not None else []
    if guard is not None and script.program is not None:
        alone += run_alone(script.program.scripts, script)
    places = [(each.lineno, each.end_lineno or each.lineno) for each in alone]  # type: ignore[attr-defined]
    return {line for first, last in places for line in range(first, last + 1)}


def line_of(item: Edit | Finding) -> int:
    """The line that an edit or a finding is about."""
    if isinstance(item, Finding):
        return item.line
    return place_of(item).lineno


def rewritten(found: Found) -> str:
    """The text of a file with the edits."""
    return _with_edits(found.script, found.edits) if found.edits else found.script.text


def sketched(found: Found) -> str:
    """What stands for the text with the edits where it is only asked whether it is another one: quicker to have."""
    notes = (
        f"# {rule}, line {line_of(edit)}: {getattr(edit, 'template', getattr(edit, 'code', ''))}\n"
        for rule, edit in found.edits
    )
    return found.script.text + "".join(notes)


@lru_cache(maxsize=KEPT)
def _with_edits(script: Script, edits: tuple[tuple[str, Edit], ...]) -> str:
    from libcst import ParserSyntaxError

    from .rewrite import EditNotPlaced, apply

    try:
        tree = script.view.original if script.view else script.tree
        code = apply(script.text, tree, [edit for _, edit in edits])
    except ParserSyntaxError as error:
        raise SourceError(script.path, error.raw_line, error.message) from error
    except EditNotPlaced as error:
        raise ConversionBug(f"{script.path}: {error}") from error
    try:
        parse(script.path, code)
    except SourceError as error:
        raise ConversionBug(f"the converted {error}") from error
    return code


def raise_if_unstable(found: Iterable[Found]) -> None:
    """Distrust the outcome: its own conversion, for real, must have nothing to do."""
    for each in found:
        for rule, edit in each.edits:
            what = f"{rule} at line {line_of(edit)}, {edit.message}"
            raise ConversionBug(f"{each.script.path}: a second conversion would change it again: {what}")


def untouched(found: Sequence[Found]) -> dict[Path, Result]:
    """The results of a conversion that is refused."""
    return {each.script.path: Result(each.script.text, findings=each.findings) for each in found}


def idle(found: Sequence[Found], reason: str) -> dict[Path, Result]:
    """The results where nothing is done, with what there is to know, and why."""
    return {each.script.path: Result(each.script.text, findings=each.findings, reason=reason) for each in found}


def refused_at(found: Sequence[Found], trail: Lost) -> dict[Path, Result]:
    """The results of a conversion that is refused where the trail is lost."""
    finding = Finding(trail.rule, "refused", trail.line, trail.message, trail.remedy)
    return untouched(
        [replace(each, findings=(*each.findings, finding)) if each.script is trail.script else each for each in found]
    )


def trains(scripts: Sequence[Script]) -> bool:
    """Whether the program comes to compute a gradient, and an optimizer is built anywhere in it."""
    backward = any(map(computes_gradients, scripts))
    return backward and any(optimizers(script) for script in scripts) and reaches_backward(scripts)
