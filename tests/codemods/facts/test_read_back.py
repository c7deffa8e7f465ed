"""Which files a program may read after it has written them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

_MAIN = """\
import json
import torch
from rows import written
written("a")
{read}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in [torch.rand(8, 4)]:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""
_ROWS = """\
import json, os
def written(folder):
    with open(os.path.join(folder, "rows.json"), "w") as file:
        json.dump([1], file)
"""


@pytest.mark.parametrize(
    ("read", "waits"),
    [
        ('rows = json.load(open("a/rows.json"))', True),
        ("rows = json.load(open(written.__doc__))", True),
        ('rows = json.load(open("settings.json"))', False),
        ('rows = open("a/rows.txt").readlines()', False),
        ("rows = []", False),
    ],
)
def test_another_file_of_the_program_reads_it(read: str, waits: bool) -> None:
    program = {Path("train.py"): _MAIN.format(read=read), Path("rows.py"): _ROWS}
    result = convert(program, "cpu")[Path("rows.py")]
    assert ("rank_zero_only(file.close)()" in result.code) == waits
