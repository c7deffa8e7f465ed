"""What rules say about the files of a program, and the texts with their edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.trail import Lost
from ddpify_codemods.found import (
    Found,
    ask,
    idle,
    is_refused,
    line_of,
    raise_if_unstable,
    refused_at,
    rewritten,
    sketched,
    trains,
    untouched,
)
from ddpify_codemods.result import ConversionBug
from ddpify_codemods.rule import Finding, Insert
from ddpify_codemods.rules import all_rules
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import training

SCRIPT = script_of("import torch\nx = 3")
EDIT = ("DDP000", Insert(SCRIPT.tree.body[1], "y = 4", "because"))
REFUSAL = Finding("DDP000", "refused", 2, "no", "do something else")


def test_the_text_with_its_edits() -> None:
    found = Found(SCRIPT, (EDIT,))
    assert rewritten(found) == "import torch\ny = 4\nx = 3"
    assert [(change.rule, change.line) for change in found.changes] == [("DDP000", 2)]
    assert line_of(EDIT[1]) == 2 == line_of(REFUSAL)


def test_a_sketch_is_another_text_for_other_edits() -> None:
    other = ("DDP000", Insert(SCRIPT.tree.body[1], "y = 5", "because"))
    sketches = {sketched(Found(SCRIPT, edits)) for edits in ((), (EDIT,), (other,), (EDIT, other))}
    assert SCRIPT.text in sketches and len(sketches) == 4


def test_a_refusal_leaves_every_file_as_it_was() -> None:
    found = [Found(SCRIPT, (EDIT,), (REFUSAL,))]
    assert is_refused(found[0]) and not is_refused(Found(SCRIPT, (EDIT,)))
    (result,) = untouched(found).values()
    assert result.code == SCRIPT.text and REFUSAL in result.findings
    (result,) = idle(found, "nothing is trained").values()
    assert (result.code, result.reason) == (SCRIPT.text, "nothing is trained")
    (result,) = refused_at([Found(SCRIPT)], Lost(SCRIPT, 2, "lost", "find it")).values()
    assert [(each.rule, each.line, each.message) for each in result.findings] == [("DDP311", 2, "lost")]


def test_an_outcome_that_would_be_changed_again_is_a_bug() -> None:
    raise_if_unstable([Found(SCRIPT)])
    with pytest.raises(ConversionBug):
        raise_if_unstable([Found(SCRIPT, (EDIT,))])


def test_rules_are_asked_and_training_is_seen() -> None:
    training = script_of("import torch\no = torch.optim.SGD(net.parameters(), lr=1)\nnet(x).backward()\no.step()")
    assert trains([training]) and not trains([SCRIPT])
    assert ask(SCRIPT, TARGETS["cpu"], all_rules()[:3], False).script.path == Path("train.py")


WORDS = """\
import pickle

def save(words):
    with open("words.pkl", "wb") as f:
        pickle.dump(words, f)

def main():
    save({})

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("uses", "stays"), [("import WORDS_FILE", True), ("import save\nsave({})", False)])
def test_what_only_runs_when_another_file_is_started_stays(uses: str, stays: bool) -> None:
    words = f"WORDS_FILE = 'words.pkl'\n{WORDS}"
    files = {Path("train.py"): f"from words {uses}\n{training()}", Path("words.py"): words}
    results = convert(files, "cpu", style="plain")
    assert "DistributedSampler" in results[Path("train.py")].code
    assert (results[Path("words.py")].code == words) is stays
