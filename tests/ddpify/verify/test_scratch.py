"""Copies of a project: whole, without caches, never so large that it surprises."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.files import BadInput
from ddpify.verify import scratch


def project(folder: Path) -> Path:
    for name in ("train.py", "data/a.bin", "__pycache__/x.pyc", ".git/config", "venv/pyvenv.cfg", "venv/lib.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "train.py").chmod(0o444)
    return folder


def test_files_are_copied_and_may_be_written_in_the_copy(tmp_path: Path) -> None:
    root, copy = project(tmp_path / "a"), tmp_path / "b"
    scratch.make(scratch.survey(root, []), copy, {root / "data" / "a.bin": b"changed"})
    assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*")) == ["data", "data/a.bin", "train.py"]
    assert (copy / "data" / "a.bin").read_bytes() == b"changed"
    (copy / "train.py").write_text("mine")
    assert (root / "train.py").read_text() == "train.py"


def test_an_empty_folder_is_there_for_a_script_that_expects_it(tmp_path: Path) -> None:
    root, copy = project(tmp_path / "a"), tmp_path / "b"
    (root / "logs" / "runs").mkdir(parents=True)
    scratch.make(scratch.survey(root, []), copy, {})
    assert (copy / "logs" / "runs").is_dir()


def test_links_are_linked_and_protected(tmp_path: Path) -> None:
    root, copy, elsewhere = project(tmp_path / "a"), tmp_path / "b", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "sets").symlink_to(elsewhere)
    found = scratch.survey(root, [root / "data"])
    scratch.make(found, copy, {})
    assert (copy / "data").is_symlink()
    assert (copy / "sets").resolve() == elsewhere
    assert set(found.protected) == {root, root / "data", elsewhere}


def test_too_much_to_copy_is_said_with_what_to_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LIMIT", 10)
    with pytest.raises(BadInput) as caught:
        scratch.survey(project(tmp_path / "a"), [])
    assert "--link" in caught.value.problem.remedy


def test_state_tells_what_was_written(tmp_path: Path) -> None:
    root = project(tmp_path / "a")
    before = scratch.states(root)
    (root / "data" / "a.bin").write_text("other bytes")
    after = scratch.states(root)
    assert [name for name in after if before[name] != after[name]] == ["data/a.bin"]
