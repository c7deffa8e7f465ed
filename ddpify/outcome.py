"""What may be written after all programs were converted: all of a program or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ddpify.conversion import Converted
from ddpify.diff import diff
from ddpify.files import Problem, Source, shown
from ddpify.report import FAILED, FileReport, Status

# The rules that refuse what is started on several processes by itself.
_HAS_PROCESSES = frozenset({"DDP301", "DDP302"})
# The rules that move code to the target's device.
_MOVES = frozenset({"DDP103", "DDP110", "DDP111", "DDP112", "DDP113", "DDP115", "DDP119", "DDP120"})


@dataclass(frozen=True)
class Outcome:
    """A program and what its conversion gave. silent: nothing to do in it is not worth a line."""

    sources: tuple[Source, ...]
    converted: Converted
    silent: bool

    @property
    def entry(self) -> Source:
        """The file that gets started."""
        return self.sources[0]

    @property
    def failed(self) -> bool:
        """Whether something in it was refused or is bad."""
        return self.converted.problem is not None or any(
            finding.severity == "refused" for result in self.converted.results.values() for finding in result.findings
        )

    @property
    def is_distributed(self) -> bool:
        """Whether it was refused because it, or its framework, starts several processes already."""
        findings = (finding for result in self.converted.results.values() for finding in result.findings)
        return any(finding.severity == "refused" and finding.rule in _HAS_PROCESSES for finding in findings)

    @cached_property
    def codes(self) -> Mapping[Source, str]:
        """The new code of every file that changes."""
        results = self.converted.results
        return {s: results[s.path].code for s in self.sources if s.path in results and results[s.path].code != s.text}


def settle(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Let programs that share files agree: what one of them cannot have, none of them gets.

    A program that is refused may share modules that others need converted: it runs in one process, and there they do
    what they did. But one that starts several processes of its own would meet them in each, and one that stays on its
    device would be left there by a module that moves to another.

    Args:
        outcomes: the programs. Two of them may reach the same module.
    Returns:
        The outcomes; those that must stay untouched for another's sake have failed, with a problem that says why.
    """
    blocked = {source.path: outcome for outcome in outcomes if outcome.is_distributed for source in outcome.sources}
    writers: dict[Path, Outcome] = {}
    for outcome in outcomes:
        for source in outcome.sources if outcome.codes and not outcome.failed else ():
            other = writers.setdefault(source.path, outcome)
            if other.codes.get(source) != outcome.codes.get(source):
                blocked.setdefault(source.path, other)
    refused = {source.path: outcome for outcome in outcomes if outcome.failed for source in outcome.sources}
    return [_settled(outcome, blocked, refused) for outcome in outcomes]


def _settled(outcome: Outcome, blocked: Mapping[Path, Outcome], refused: Mapping[Path, Outcome]) -> Outcome:
    for source in outcome.codes if not outcome.failed else ():
        moves = any(change.rule in _MOVES for change in outcome.converted.results[source.path].changes)
        other = blocked.get(source.path) or (refused.get(source.path) if moves else None)
        if other is not None:
            return replace(outcome, converted=_blocked(outcome, source, other))
    return outcome


def _blocked(outcome: Outcome, shared: Source, other: Outcome) -> Converted:
    if other.failed and not other.is_distributed:
        message = (
            f"shares {shared.name}, which would move to another device, with {other.entry.name}, which was refused"
        )
        remedy = "correct that one first, or give it a copy"
    elif other.failed:
        message = f"shares {shared.name} with {other.entry.name}, which has processes of its own"
        remedy = "give one of them a copy of it"
    else:
        message = f"needs another {shared.name} than the other programs that share it"
        remedy = "convert one of them by name"
    return replace(outcome.converted, problem=Problem(outcome.entry.name, 0, message, remedy))


def reports(outcome: Outcome, written: Status, launch: Callable[[Source, str], str]) -> list[FileReport]:
    """What to tell about the files of a program: its script, those that change, those with findings.

    Args:
        outcome: the program. written: the status of a file that changes. launch: how to start a converted
            script; it gets its own way to be started, if it has one.
    Returns:
        One report a file.
    """
    problem = outcome.converted.problem
    told = [FileReport(problem.path, "error", problem=problem)] if problem else []
    for source in outcome.sources:
        result = outcome.converted.results.get(source.path)
        if problem and problem.path == source.name:
            continue
        if result is None or not (source is outcome.entry or source in outcome.codes or result.findings):
            if source is outcome.entry:
                told.append(FileReport(source.name, "untouched"))
            continue
        refused = any(finding.severity == "refused" for finding in result.findings)
        report = FileReport(source.name, "nothing to do", findings=result.findings, silent=outcome.silent)
        if outcome.failed:
            report = replace(report, status="refused" if refused else "untouched")
        elif source in outcome.codes:
            new = source.encode(outcome.codes[source])
            report = replace(
                report, status=written, changes=result.changes, diff=diff(shown(source.path), source.raw, new)
            )
        else:
            report = replace(report, reason=result.reason)
        starts = result.launch or "process_group(" in outcome.codes.get(source, "")
        if source is outcome.entry and starts and not outcome.failed:
            report = replace(report, launch=launch(source, result.launch))
        told.append(report)
    return told


def merge(told: Sequence[FileReport]) -> tuple[FileReport, ...]:
    """One report a file, where programs share files: a failure counts most, then a change."""

    def weight(report: FileReport) -> tuple[bool, bool, bool]:
        failed = report.status in FAILED and not (report.status == "untouched" and report.name in changed)
        return failed, report.status not in ("nothing to do", "untouched"), bool(report.launch)

    changed = {report.name for report in told if report.changes and report.status not in FAILED}
    best: dict[str, FileReport] = {}
    for report in told:
        if report.name not in best or weight(report) > weight(best[report.name]):
            best[report.name] = report
    return tuple(best.values())
