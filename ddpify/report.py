"""What a run says: to people, to programs (JSON), to GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from ddpify.files import Problem

if TYPE_CHECKING:
    from ddpify_codemods import Change, Finding, Rule

Status = Literal["converted", "would convert", "nothing to do", "refused", "untouched", "error"]
FAILED = ("refused", "untouched", "error")
_NAMED = 4  # files that a sum names
ADVICE = ("DDP5", "DDP402")  # what is told of every script: rules that read distributed ones, comments that do nothing


@dataclass(frozen=True)
class FileReport:
    """What became of one file.

    reason: why there was nothing to do. problem: why it could not be used. diff: the change as a unified diff.
    launch: how to start it, if it is a converted script. silent: not worth a line for people when nothing was done.
    """

    name: str
    status: Status
    reason: str = ""
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None
    diff: bytes = b""
    launch: str = ""
    silent: bool = False


@dataclass(frozen=True)
class Report:
    """What became of all files.

    checked: whether only a check was asked for. into: where the code went, if not where it came from. root: the folder
    where a diff is to be applied, if not the current one.
    """

    files: tuple[FileReport, ...]
    target: str = ""
    checked: bool = False
    into: str = ""
    root: str = ""

    @property
    def exit_code(self) -> int:
        """0 done or nothing to do, 1 a check found work, 2 something was refused or is bad."""
        refused = (each.severity == "refused" for file in self.files if file.changes for each in file.findings)
        if any(file.status in FAILED or file.problem for file in self.files) or any(refused):
            return 2
        return int(self.checked and any(file.status == "would convert" for file in self.files))


def text(report: Report) -> tuple[list[str], list[str]]:
    """The report for people.

    Returns:
        The lines that say what was done, and the lines that say what could not be done.
    """
    done = [line for file in report.files if file.changes for line in _done(file, report)]
    done += [line for file in report.files for line in _remarks(file)]
    idle = [file for file in report.files if file.status == "nothing to do" and file.reason and not file.silent]
    if len(idle) == 1:
        done.append(f"nothing to do in {idle[0].name}: {idle[0].reason}")
    elif idle:
        done.append(f"nothing to do in {len(idle)} files")
    changed = [file.name for file in report.files if file.status in ("converted", "would convert")]
    failed = [file.name for file in report.files if file.status in FAILED]
    if len(report.files) == 0 or (len(idle) == 0 and not changed and not failed):
        done.append("nothing to do: no training script found that is not converted already")
    if report.root and changed:
        done.append(f"the paths in the diff start at {report.root}: git -C {report.root} apply")
    if len(changed) + len(failed) > 1:
        done.append(_count(report, changed, failed))
    return done, [line for file in report.files for line in _refusals(file)]


def _done(file: FileReport, report: Report) -> Iterator[str]:
    if file.status not in ("converted", "would convert"):
        return
    into = f" into {report.into}" if report.into not in ("", "-") else ""
    target = "one device" if report.target == "none" else report.target
    if report.checked:
        yield f"would convert {file.name} for {target}"
        return
    yield f"{file.status} {file.name} for {target}{into}"
    for rule in dict.fromkeys(change.rule for change in file.changes):
        yield f"  {rule} " + "; ".join(_messages([change for change in file.changes if change.rule == rule]))
    if file.launch:
        yield f"start it with: {file.launch}"


def _messages(changes: Sequence[Change]) -> Iterator[str]:
    for message in dict.fromkeys(change.message for change in changes):
        lines = dict.fromkeys(str(change.line) for change in changes if change.message == message)
        yield f"{message} ({'line' if len(lines) == 1 else 'lines'} {', '.join(lines)})"


def _remarks(file: FileReport) -> Iterator[str]:
    """What a conversion should be read with; of a file that is left as it is, the hazards that it has already."""
    is_shown = file.status not in FAILED and (bool(file.changes) or not file.silent)
    for finding in file.findings:
        if (is_shown and finding.severity != "refused") or finding.rule.startswith(ADVICE):
            yield _finding(file.name, finding)


def _refusals(file: FileReport) -> Iterator[str]:
    if file.problem:
        place = f"{file.problem.path}:{file.problem.line}" if file.problem.line else file.problem.path
        yield f"{place}: {file.problem.message}; {file.problem.remedy}"
    yield from (_finding(file.name, finding) for finding in file.findings if finding.severity == "refused")


def _finding(name: str, finding: Finding) -> str:
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    return f"{name}:{finding.line}: {finding.message}{remedy} [{finding.rule}]"


def _count(report: Report, changed: Sequence[str], failed: Sequence[str]) -> str:
    verb = "would be converted" if any(file.status == "would convert" for file in report.files) else "converted"
    counted = f"{len(changed)} {'file' if len(changed) == 1 else 'files'} {verb}"
    named = [*failed[:_NAMED], f"{len(failed) - _NAMED} more"] if len(failed) > _NAMED + 1 else failed
    return f"{counted}, {len(failed)} left untouched ({', '.join(named)})" if failed else counted


def as_json(report: Report, with_diff: bool) -> str:
    """The report as one JSON document.

    Args:
        report: what to tell. with_diff: whether each file carries its diff.
    Returns:
        An object: target, exit_code, files (path, status, reason, changes, findings and, if asked for, diff).
    """
    files = []
    for file in report.files:
        entry = {
            "path": file.name,
            "status": file.status,
            "reason": file.reason,
            "changes": [asdict(change) for change in file.changes],
            "findings": [asdict(finding) for finding in file.findings] + _problem(file),
        }
        if with_diff:
            entry["diff"] = file.diff.decode("utf-8", "replace")
        files.append(entry)
    return json.dumps({"target": report.target, "exit_code": report.exit_code, "files": files}, indent=2)


def _problem(file: FileReport) -> list[dict[str, object]]:
    if not file.problem:
        return []
    problem = file.problem
    place = {"rule": None, "severity": "error", "line": problem.line or None}
    return [{**place, "message": problem.message, "remedy": problem.remedy}]


def github(report: Report) -> list[str]:
    """The report as workflow commands of GitHub Actions, which annotate the lines of a pull request."""
    level = {"refused": "error", "warning": "warning", "note": "notice"}
    found = []
    for file in report.files:
        done, kind = ("to do: ", "warning") if file.status == "would convert" else ("", "notice")
        if file.problem:
            message = f"{file.problem.message}; {file.problem.remedy}"
            found.append(_command("error", file.problem.path, file.problem.line, "ddpify", message))
        if file.status not in FAILED:
            found += [_command(kind, file.name, c.line, c.rule, done + c.message) for c in file.changes]
        for finding in file.findings:
            message = f"{finding.message}; {finding.remedy}" if finding.remedy else finding.message
            found.append(_command(level[finding.severity], file.name, finding.line, finding.rule, message))
    return found


def _command(kind: str, name: str, line: int, title: str, message: str) -> str:
    def escaped(words: str) -> str:
        return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def value(words: str) -> str:
        return escaped(words).replace(":", "%3A").replace(",", "%2C")

    place = f",line={line}" if line else ""
    return f"::{kind} file={value(name)}{place},title={value(title)}::{escaped(message)}"


def explanation(rule: Rule) -> str:
    """The page of a rule: what it does, why, and an example."""
    parts = [f"{rule.id}  {rule.title}", rule.why.strip(), "Before:", _indented(rule.before)]
    after = "Put right by hand:" if rule.folder == "lint" else f"After, for {rule.target}:"
    parts += [after, _indented(rule.after)] if rule.after.strip() else ["This is refused."]
    return "\n\n".join(parts)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in code.strip("\n").split("\n"))
