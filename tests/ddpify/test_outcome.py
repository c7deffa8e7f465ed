"""What may be written after all programs were converted: all of a program or nothing."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods.result import Result
from ddpify_codemods.rule import Change, Finding

from ddpify.conversion import Converted
from ddpify.files import Problem, Source
from ddpify.outcome import Outcome, left_out, merge, reports, settle
from ddpify.report import FileReport, Report

TRAIN, OTHER, NET = (
    Source(Path(f"/p/{name}"), name, b"x = 1\n", "x = 1\n", "utf-8") for name in ("a.py", "b.py", "net.py")
)
MOVED = Result("x = 2\n", (Change("DDP110", 1, "moved"),))


def program(entry: Source, *findings: Finding, net: Result = MOVED) -> Outcome:
    return Outcome((entry, NET), Converted({entry.path: Result("x = 3\n", findings=findings), NET.path: net}), False)


def refusal(rule: str, distributed: bool = False) -> Finding:
    return Finding(rule, "refused", 1, "no", "do that", distributed)


def test_what_a_program_is() -> None:
    assert not program(TRAIN).failed and set(program(TRAIN).codes) == {TRAIN, NET}
    assert program(TRAIN, refusal("DDP399")).failed and not program(TRAIN, refusal("DDP399")).has_processes
    assert program(TRAIN, refusal("DDP301")).has_processes
    assert program(TRAIN, refusal("DDP301", distributed=True)).distributed


def test_a_program_with_processes_of_its_own_keeps_shared_modules_as_they_are() -> None:
    refused, blocked = settle([program(TRAIN, refusal("DDP301")), program(OTHER)])
    assert refused.failed and blocked.converted.problem is not None
    assert "net.py" in blocked.converted.problem.message
    assert not settle([program(TRAIN), program(OTHER)])[1].failed


def test_a_file_that_is_to_be_left_alone_stops_its_program() -> None:
    found = left_out(program(TRAIN), lambda source: "it is excluded" if source is NET else "")
    assert found.failed
    assert not left_out(program(TRAIN), lambda source: "").failed


def test_one_report_for_each_file() -> None:
    told = reports(program(TRAIN), "converted", lambda _: "torchrun a.py", Path("/p"))
    assert [(file.name, file.status) for file in told] == [("a.py", "converted"), ("net.py", "converted")]
    failed = FileReport("net.py", "refused", findings=(refusal("DDP399"),), problem=Problem("net.py", 1, "no", "x"))
    untouched = FileReport("net.py", "untouched")
    assert [file.status for file in merge([untouched, failed])] == ["refused"]


def test_what_is_written_is_told_whatever_another_program_is_refused_for_in_it() -> None:
    told = reports(program(TRAIN), "converted", lambda _: "torchrun a.py", Path("/p"))
    failed = FileReport("net.py", "refused", findings=(refusal("DDP399"),))
    for entries in ([*told[1:], failed], [failed, *told[1:]]):
        [file] = merge(entries)
        assert file.status == "converted" and file.diff and refusal("DDP399") in file.findings
        assert Report((file,)).exit_code == 2
