"""Converting one program, whatever it contains; and many on all cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.conversion import added_of, convert_program, divided, imports_of
from ddpify.files import Source, read

TRAIN = """\
import torch
import net
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.rand(2, 4)).mean().backward()
    optimizer.step()
"""


def source(folder: Path, text: str) -> Source:
    path = folder / "train.py"
    path.write_text(text)
    return read(path, "train.py")


@pytest.mark.parametrize(
    ("text", "word"), [("import torch\ndef f(:\n", ""), ("import torch\nprint 'hello'\n", "Python 2")]
)
def test_what_is_no_python_is_a_problem_with_its_line(tmp_path: Path, text: str, word: str) -> None:
    found = convert_program([source(tmp_path, text)], "cpu")
    assert found.problem is not None and found.problem.line == 2
    assert word in f"{found.problem.message} {found.problem.remedy}"


def test_imports_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("")
    assert imports_of(source(tmp_path, TRAIN), tmp_path) == [tmp_path.resolve() / "net.py"]
    assert added_of(source(tmp_path, "import sys\nx = 3\n")) == []


def test_programs_that_share_files_stay_together(tmp_path: Path) -> None:
    one, two, three = (source(tmp_path, f"x = {number}\n") for number in range(3))
    groups = divided([[one, two], [two], [three]], 2)
    assert sorted(number for group in groups for number in group) == [0, 1, 2]
