"""What a run says: to people, to programs, to GitHub."""

from __future__ import annotations

import json

from ddpify_codemods import RULES
from ddpify_codemods.rule import Change, Finding

from ddpify.report import FileReport, Report, as_json, explanation, github, text

CHANGES = (Change("DDP101", 3, "join"), Change("DDP101", 7, "join"), Change("DDP102", 5, "wrap"))
REFUSED = Finding("DDP301", "refused", 4, "this cannot be, ever", "do that")
DONE = FileReport("train.py", "converted", changes=CHANGES, launch="torchrun train.py")
BAD = FileReport("bad.py", "refused", findings=(REFUSED,))


def test_people_read_what_was_done_by_rule_and_how_to_start_it() -> None:
    done, failed = text(Report((DONE,), "cuda"))
    assert done[:4] == [
        "converted train.py for cuda",
        "  DDP101 join (lines 3, 7)",
        "  DDP102 wrap (line 5)",
        "start it with: torchrun train.py",
    ]
    assert failed == []


def test_a_refusal_is_one_line_with_its_place_and_remedy() -> None:
    _, failed = text(Report((BAD,), "cuda"))
    assert failed == ["bad.py:4: this cannot be, ever; do that [DDP301]"]


def test_exit_codes() -> None:
    assert Report((DONE,)).exit_code == 0
    assert Report((FileReport("a.py", "would convert"),), checked=True).exit_code == 1
    assert Report((DONE, BAD)).exit_code == 2


def test_programs_read_one_document() -> None:
    told = json.loads(as_json(Report((DONE, BAD), "cuda"), with_diff=True))
    assert (told["target"], told["exit_code"]) == ("cuda", 2)
    assert [file["status"] for file in told["files"]] == ["converted", "refused"]
    assert told["files"][1]["findings"][0]["line"] == 4 and "diff" in told["files"][0]


def test_github_reads_commands_with_escaped_words() -> None:
    lines = github(
        Report((FileReport("a,b.py", "refused", findings=(Finding("DDP301", "refused", 4, "100%\nno", ""),)),))
    )
    assert lines == ["::error file=a%2Cb.py,line=4,title=DDP301::100%25%0Ano"]


def test_the_page_of_a_rule_has_its_example() -> None:
    rule = next(rule for rule in RULES if rule.folder == "convert" and rule.after)
    page = explanation(rule)
    assert page.startswith(f"{rule.id}  {rule.title}") and "Before:" in page and "After, for" in page
