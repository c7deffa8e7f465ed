"""How often a tree of scripts is read: each file once, however many programs reach it; nothing is timed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ddpify_codemods.folders import listing
from ddpify_codemods.found import ask

from ddpify import command
from ddpify.command import CommandLine, run
from ddpify.conversion import divided
from ddpify.files import Source

SHARED = """\
import torch


def helper_{name}(batch):
    return batch.mean()
"""
SCRIPT = """\
import torch
from pack import {modules}

# {name}
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def own_{name}(batch):
    return a.helper_a(model(batch))


for _ in range(3):
    optimizer.zero_grad()
    own_{name}(torch.ones(4, 2)).backward()
    optimizer.step()
"""
MODULES = ("a", "b", "c", "d")


def tree(folder: Path, scripts: int) -> None:
    """Scripts in folders of their own, which share the modules of a package; each has more that the others lack."""
    (folder / ".git").mkdir()
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("import torch  # a package\n")
    for name in MODULES:
        (folder / "pack" / f"{name}.py").write_text(SHARED.format(name=name))
    for number in range(scripts):
        (folder / f"at{number}").mkdir()
        text = SCRIPT.format(modules=", ".join(MODULES), name=f"number_{number}")
        (folder / f"at{number}" / "train.py").write_text(text)


def checked(folder: Path, monkeypatch: pytest.MonkeyPatch, diff: bool = False) -> int:
    monkeypatch.chdir(folder)
    report, _ = run(CommandLine((".",), "cuda", check=True, diff=diff))
    return report.exit_code


def test_each_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its imports, its search path, what it means in six programs, and what becomes of it."""
    tree(tmp_path, scripts=6)
    parsed: Counter[str] = Counter()
    original = ast.parse

    def parse(text: str, *words: Any, **options: Any) -> Any:
        parsed[text] += 1
        return original(text, *words, **options)

    monkeypatch.setattr(ast, "parse", parse)
    assert checked(tmp_path, monkeypatch) == 1
    texts = [path.read_text() for path in tmp_path.rglob("*.py")]
    assert len(texts) == 11
    assert [parsed[text] for text in texts] == [1] * 11


@pytest.mark.parametrize("scripts", [2, 6])
def test_the_rules_are_asked_once_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: int) -> None:
    """Of a shared module once, whatever else the programs define, and wherever they lie; with a diff, of each file as
    it becomes, too, where its modules know that they belong to a converted program."""
    tree(tmp_path, scripts)
    files, start = scripts + len(MODULES) + 1, ask.cache_info().misses
    assert checked(tmp_path, monkeypatch) == 1
    assert ask.cache_info().misses - start == files
    assert checked(tmp_path, monkeypatch, diff=True) == 1
    assert ask.cache_info().misses - start == 2 * files


def test_a_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six programs look for their imports in the same folders."""
    tree(tmp_path, scripts=6)
    monkeypatch.setattr(command, "forget", lambda: listing.cache_clear())
    assert checked(tmp_path, monkeypatch) == 1
    inside = sum(1 for path in (tmp_path, *tmp_path.rglob("*")) if path.is_dir())
    assert listing.cache_info().misses <= inside + len(tmp_path.parents)


def test_libcst_is_not_imported_where_nothing_trains(tmp_path: Path) -> None:
    """A tree of models and tools is looked through by Python's own parser alone."""
    tree(tmp_path, scripts=1)
    (tmp_path / "at0" / "train.py").write_text(
        "import torch\nfrom pack import a\n\nif __name__ == '__main__':\n    a\n"
    )
    code = f"""\
import os, sys
from ddpify.command import CommandLine, run
os.chdir({str(tmp_path)!r})
report, _ = run(CommandLine((".",), "cuda", check=True))
assert report.exit_code == 0 and [file.reason for file in report.files] == ["no training loop"], report
assert "libcst" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def source(name: str, size: int) -> Source:
    return Source(Path(name), name, b"", "#" * size, "utf-8")


def test_programs_that_share_most_stay_in_one_process() -> None:
    library = source("library.py", 1000)
    programs = [[source(f"{number}.py", 10), library] for number in range(20)]
    assert divided(programs, most=4) == [list(range(20))]


def test_programs_of_their_own_are_divided_evenly() -> None:
    programs = [[source(f"{number}.py", 100)] for number in range(12)]
    assert sorted(map(len, divided(programs, most=4))) == [3, 3, 3, 3]


def test_two_libraries_go_to_two_processes() -> None:
    first, second = source("first.py", 1000), source("second.py", 1000)
    programs = [[source(f"{number}.py", 10), (first, second)[number % 2]] for number in range(10)]
    assert divided(programs, most=2) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
