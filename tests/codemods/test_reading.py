"""A file that several programs share is read once, and means in each what it means there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert, reading
from ddpify_codemods.reading import read

MODULE = """\
import torch
from torch import nn


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(batch.cuda()).mean().backward()
        optimizer.step()
    save(model.state_dict(), "model.pt")
"""
SCRIPT = """\
from torch import nn

from common import train

train(nn.Linear(2, 2), [])
"""


def program(folder: Path, name: str, script: str) -> dict[Path, str]:
    return {folder / name: script, folder / "common.py": MODULE}


def test_the_same_object(tmp_path: Path) -> None:
    """One file, two programs in which it means the same: whatever was found out about it is found out once."""
    shared = [read(program(tmp_path, name, SCRIPT), (tmp_path,))[1][1] for name in ("first.py", "second.py")]
    assert shared[0] is shared[1]


def test_what_a_program_defines_is_its_own(tmp_path: Path) -> None:
    """`save` is a function of one of the two programs, and not known in the other."""
    other = SCRIPT + "\n\ndef save(state, path):\n    pass\n"
    shared = [read(program(tmp_path, "script.py", text))[1][1] for text in (SCRIPT, other)]
    assert [script.defined for script in shared] == [{"train"}, {"train", "save"}]


@pytest.mark.parametrize("count", [1, 4])
def test_each_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """As many programs as there are: the module's text is parsed once as it is, and once as it was rewritten."""
    parsed: list[Path] = []

    def parse(path: Path, text: str) -> ast.Module:
        parsed.append(path)
        return ast.parse(text)

    monkeypatch.setattr(reading, "parse", parse)
    for number in range(count):
        convert(program(tmp_path, f"script{number}.py", SCRIPT), "cuda", roots=(tmp_path,))
    assert parsed.count(tmp_path / "common.py") == 2


def test_the_results_of_programs_do_not_depend_on_each_other(tmp_path: Path) -> None:
    """Converted after another program or by itself, the script and the module become the same."""
    here, alone = program(tmp_path / "a", "script.py", SCRIPT), program(tmp_path / "b", "script.py", SCRIPT)
    other = SCRIPT.replace("train(nn", "def save(state, path):\n    print(path)\n\n\ntrain(nn")
    convert(program(tmp_path / "a", "other.py", other), "cuda")
    texts = [[result.code for result in convert(each, "cuda").values()] for each in (here, alone)]
    assert texts[0] == texts[1]
