"""What may be written after all programs were converted: all of a program or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ddpify_codemods import TARGETS

from ddpify.conversion import Converted
from ddpify.diff import diff
from ddpify.files import Problem, Source
from ddpify.report import FAILED, FileReport, Status

# The rules that refuse what is started on several processes by itself.
_HAS_PROCESSES = frozenset({"DDP301", "DDP302"})
# What joins the processes, in the words of one engine or another.
_JOINS = ("init_process_group(", *(f"{join}(" for target in TARGETS.values() for join in target.words.joined))
# The rules that move code to the target's device.
_MOVES = frozenset({"DDP103", "DDP110", "DDP111", "DDP112", "DDP113", "DDP115", "DDP119", "DDP120", "DDP123"})


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
    def has_processes(self) -> bool:
        """Whether it was refused because it, or its framework, starts several processes already."""
        findings = (finding for result in self.converted.results.values() for finding in result.findings)
        return any(finding.severity == "refused" and finding.rule in _HAS_PROCESSES for finding in findings)

    @property
    def distributed(self) -> bool:
        """Whether it is distributed already: then nothing else that is refused in it matters."""
        found = (finding for result in self.converted.results.values() for finding in result.findings)
        return self.converted.problem is None and any(each.distributed and each.severity == "refused" for each in found)

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
    blocked = {source.path: outcome for outcome in outcomes if outcome.has_processes for source in outcome.sources}
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
    if other.failed and not other.has_processes:
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


def left_out(outcome: Outcome, reason: Callable[[Source], str]) -> Outcome:
    """The outcome; with a problem if it changes a file that is to be left alone.

    Args:
        outcome: of a program. reason: why a file is to be left alone, "" if it is not.
    """
    for source in outcome.codes if not outcome.failed else ():
        if why := reason(source):
            message = f"needs changes in {source.name}, which is to be left alone ({why})"
            problem = Problem(outcome.entry.name, 0, message, "leave this script alone too, or none of them")
            return replace(outcome, converted=replace(outcome.converted, problem=problem))
    return outcome


def reports(
    outcome: Outcome,
    written: Status,
    launch: Callable[[Outcome], str],
    folder: Path | None = None,
    demanded: bool = True,
) -> list[FileReport]:
    """What to tell about the files of a program: its script, those that change, those with findings.

    Args:
        outcome: the program. written: the status of a file that changes. launch: how to start a converted
            script. folder: where the names in diffs start; None for no diffs.
        demanded: whether its conversion was asked for by name; else that it is distributed already needs no place.
    Returns:
        One report a file.
    """
    problem = outcome.converted.problem
    if outcome.has_processes and not outcome.distributed and not problem:
        outcome = _said_once(outcome)
    entries = [FileReport(problem.path, "error", problem=problem)] if problem else []
    for source in outcome.sources:
        result = outcome.converted.results.get(source.path)
        if problem and problem.path == source.name:
            continue
        if result is None or not (source is outcome.entry or source in outcome.codes or result.findings):
            if source is outcome.entry:
                entries.append(FileReport(source.name, "untouched"))
            continue
        refused = any(finding.severity == "refused" for finding in result.findings)
        report = FileReport(source.name, "nothing to do", findings=result.findings, silent=outcome.silent)
        if outcome.distributed:
            shown = (each for each in result.findings if each.severity != "refused" or (each.distributed and demanded))
            notes = (replace(each, severity="note") if each.distributed else each for each in shown)
            report = replace(report, reason="distributed already", findings=tuple(notes))
        elif outcome.failed:
            report = replace(report, status="refused" if refused else "untouched")
        elif source in outcome.codes:
            report = replace(report, status=written, changes=result.changes)
            if folder is not None:
                new = source.encode(outcome.codes[source])
                report = replace(report, diff=diff(_from(source.path, folder), source.raw, new))
        else:
            report = replace(report, reason=result.reason)
        starts = result.launch or any(join in outcome.codes.get(source, "") for join in _JOINS)
        if source is outcome.entry and starts and not outcome.failed:
            report = replace(report, launch=launch(outcome))
        entries.append(report)
    return entries


def _said_once(outcome: Outcome) -> Outcome:
    """The outcome with what is true of the whole program, that it has processes of its own, said of one file."""
    results = outcome.converted.results
    found = [
        (path, each) for path, result in results.items() for each in result.findings if each.rule in _HAS_PROCESSES
    ]
    place, first = found[0]
    others = len({path for path, _ in found} - {place})
    counted = f" (so {'does' if others == 1 else 'do'} {others} more of its files)" if others else ""
    said = {
        path: tuple(each for each in result.findings if (path, each) not in found) for path, result in results.items()
    }
    said[place] = (replace(first, message=first.message + counted), *said[place])
    shown = {path: replace(result, findings=said[path]) for path, result in results.items()}
    return replace(outcome, converted=replace(outcome.converted, results=shown))


def diff_folder(outcomes: Sequence[Outcome]) -> Path:
    """Where the names in diffs start, so that `git apply` takes them: the current folder if all that changes lies
    there, else the root of its repository, else the nearest folder that holds all of it."""
    changed = [source.path for outcome in outcomes if not outcome.failed for source in outcome.codes]
    above = [Path.cwd(), *Path.cwd().parents]
    roots = [folder for folder in above if (folder / ".git").exists()]
    return next(
        (folder for folder in [above[0], *roots[:1], *above] if all(path.is_relative_to(folder) for path in changed)),
        above[-1],
    )


def _from(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def merge(entries: Sequence[FileReport]) -> tuple[FileReport, ...]:
    """One report a file, where programs share files: a change counts most, and takes with it why others are refused
    in the same file, so that what is written is always told; then a failure."""

    def weight(report: FileReport) -> tuple[bool, bool, bool, bool]:
        failed = report.status in FAILED
        told = report.status not in ("nothing to do", "untouched")
        return bool(report.changes) and not failed, failed, told, bool(report.launch)

    best: dict[str, FileReport] = {}
    for report in entries:
        kept, other = best.get(report.name, report), report
        if weight(other) > weight(kept):
            kept, other = other, kept
        refusals = [each for each in other.findings if each.severity == "refused" and each not in kept.findings]
        if kept.changes and kept.status not in FAILED:
            kept = replace(kept, findings=(*kept.findings, *refusals), problem=kept.problem or other.problem)
        best[report.name] = kept
    return tuple(best.values())
