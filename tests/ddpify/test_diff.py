"""--diff prints what `git apply` accepts, byte for byte."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpify.diff import diff
from tests.ddpify.command import ENGINE, LIBRARY, MAIN, TRAIN, ddpify, lines, put


def git(folder: Path, *words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=folder, input=stdin, capture_output=True, check=True).stdout


SOURCES = {
    "plain": TRAIN.encode(),
    "no final newline": TRAIN.encode().rstrip(b"\n"),
    "crlf": TRAIN.encode().replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + TRAIN.encode(),
    "latin-1": b"# coding: latin-1\n" + TRAIN.replace("main():", "main():  # caf\xe9").encode("latin-1"),
    "form feed and line separator": TRAIN.replace("def main", "\f\ndef main").replace("epoch in", "epoch  in").encode()
    + "# \u2028 \x85\n".encode(),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_git_apply_gives_what_converting_gives(tmp_path: Path, source: bytes) -> None:
    (tmp_path / "train.py").write_bytes(source)
    done = ddpify("train.py", "--target", "cuda", "--diff", cwd=tmp_path)
    assert (tmp_path / "train.py").read_bytes() == source
    git(tmp_path, "init", "-q")
    git(tmp_path, "-c", "core.autocrlf=false", "apply", "-", stdin=done.stdout)
    applied = (tmp_path / "train.py").read_bytes()
    (tmp_path / "train.py").write_bytes(source)
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    assert (tmp_path / "train.py").read_bytes() == applied != source


def test_several_files_from_a_subfolder(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    put(folder, main=MAIN, engine=ENGINE, library=LIBRARY)
    git(tmp_path, "init", "-q")
    done = ddpify(".", "--target", "cuda", "--diff", cwd=folder)
    assert [line for line in lines(done.stdout) if line.startswith("+++ ")] == ["+++ b/main.py", "+++ b/engine.py"]
    git(folder, "apply", "-", stdin=done.stdout)
    assert b"nothing to do" in ddpify(".", "--target", "cuda", cwd=folder).stdout


@pytest.mark.parametrize("name", ["my train.py", "a\tb.py", 'a "b".py', "caf\u00e9.py", "back\\slash.py"])
def test_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"one\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "apply", "-", stdin=diff(name, b"one\n", b"two\n"))
    assert (tmp_path / name).read_bytes() == b"two\n"


@pytest.mark.parametrize("in_git", [True, False])
def test_outside_the_current_folder(tmp_path: Path, in_git: bool) -> None:
    for name in ("project", "project/here", "project/there"):
        (tmp_path / name).mkdir()
    project = tmp_path / "project"
    put(project / "there", main=MAIN, engine=ENGINE)
    if in_git:
        git(project, "init", "-q")
    done = ddpify("../there/main.py", "--target", "cuda", "--diff", cwd=project / "here")
    (hint,) = [line for line in lines(done.stderr) if "git -C" in line]
    assert hint == f"the paths in the diff start at {project}: git -C {project} apply"
    git(project, "apply", "-", stdin=done.stdout)
    assert b"nothing to do" in ddpify("../there/main.py", "--target", "cuda", cwd=project / "here").stdout


def test_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    put(tmp_path / "real", train=TRAIN)
    (tmp_path / "link.py").symlink_to("real/train.py")
    done = ddpify("link.py", "--target", "cuda", "--diff", cwd=tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "apply", "-", stdin=done.stdout)
    assert "ddpify_runtime" in (tmp_path / "real/train.py").read_text(encoding="utf-8")


def test_the_summary_does_not_mix_with_the_diff(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", "--target", "cuda", "--diff", cwd=tmp_path)
    assert lines(done.stdout)[:2] == ["--- a/train.py", "+++ b/train.py"]
    assert lines(done.stderr)[0] == "would convert train.py for cuda"


def test_with_check_it_exits_1(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    plain = ddpify("train.py", "--target", "cuda", "--diff", cwd=tmp_path)
    checked = ddpify("train.py", "--target", "cuda", "--diff", "--check", cwd=tmp_path, code=1)
    assert checked.stdout == plain.stdout


def test_nothing_to_do_is_an_empty_diff(tmp_path: Path) -> None:
    put(tmp_path, library=LIBRARY)
    assert ddpify("library.py", "--target", "cuda", "--diff", "--check", cwd=tmp_path).stdout == b""


def changed(shown: bytes) -> int:
    """How many lines are removed and added."""
    return sum(line[:1] in (b"-", b"+") and line[:3] not in (b"---", b"+++") for line in shown.splitlines())


def ends(lines: list[bytes]) -> list[bytes]:
    """Other last lines before the blank ones at the end of a file, and one more after them."""
    return [*lines[:-8], b"if True:\n", b"    main()\n", *lines[-7:], b"end()\n"]


def waits_less(lines: list[bytes]) -> list[bytes]:
    """Without the lines that wait for the other ranks, and the next one changed."""
    return [b"    work(2)\n" if line == b"    work(1)\n" else line for line in lines if line != b"    barrier()\n"]


@pytest.mark.parametrize("edit", [ends, waits_less])
def test_it_is_as_small_as_that_of_git(tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    """In a long file too, where a blank line is one of many."""
    steps = [b"def step():\n    work(0)\n\n    barrier()\n\n    work(1)\n\n    barrier()\n\n\n"] * 40
    old = b"".join([*steps, b"main()\n", b"\n" * 7]).splitlines(keepends=True)
    before, after = b"".join(old), b"".join(edit(old))
    (tmp_path / "train.py").write_bytes(before)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "train.py")
    shown = diff("train.py", before, after)
    git(tmp_path, "apply", "-", stdin=shown)
    assert (tmp_path / "train.py").read_bytes() == after
    assert changed(shown) <= changed(git(tmp_path, "diff"))
