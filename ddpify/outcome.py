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

    @cached_property
    def codes(self) -> Mapping[Source, str]:
        """The new code of every file that changes."""
        results = self.converted.results
        return {s: results[s.path].code for s in self.sources if s.path in results and results[s.path].code != s.text}


def settle(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Let programs that share files agree: what one of them cannot have, none of them gets.

    Args:
        outcomes: the programs. Two of them may reach the same module.
    Returns:
        The outcomes; those that must stay untouched for another's sake have failed, with a problem that says why.
    """
    settled = list(outcomes)
    blocked = {source.path: outcome for outcome in settled if outcome.failed for source in outcome.sources}
    writers: dict[Path, Outcome] = {}
    for outcome in settled:
        for source in outcome.sources if outcome.codes and not outcome.failed else ():
            other = writers.setdefault(source.path, outcome)
            if other.codes.get(source) != outcome.codes.get(source):
                blocked.setdefault(source.path, other)
    waiting = True
    while waiting:
        waiting = False
        for number, outcome in enumerate(settled):
            shared = next((source for source in outcome.codes if source.path in blocked), None)
            if shared is None or outcome.failed:
                continue
            settled[number] = replace(outcome, converted=_blocked(outcome, shared, blocked[shared.path]))
            blocked = {source.path: outcome for source in outcome.codes} | blocked
            waiting = True
    return settled


def _blocked(outcome: Outcome, shared: Source, other: Outcome) -> Converted:
    if other.failed:
        message, remedy = f"shares {shared.name} with {other.entry.name}, which was refused", "correct that one first"
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
        return report.status in FAILED, report.status != "nothing to do", bool(report.launch)

    best: dict[str, FileReport] = {}
    for report in told:
        if report.name not in best or weight(report) > weight(best[report.name]):
            best[report.name] = report
    return tuple(best.values())
