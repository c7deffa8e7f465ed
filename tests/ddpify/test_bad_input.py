"""Anything a person may write gets one clear line and exit code 2, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ddpify.command import TRAIN, ddpify, lines, put


def refusal(tmp_path: Path, *arguments: str) -> str:
    """The one line that the command answers with."""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = ddpify(*arguments, cwd=tmp_path, code=2)
    assert done.stdout == b""
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (line,) = lines(done.stderr)
    return line


def test_syntax_error(tmp_path: Path) -> None:
    put(tmp_path, train="import torch\n\nfor x in y\n    pass\n")
    line = refusal(tmp_path, "train.py", "--target", "cuda")
    assert line.startswith("train.py:3: ")
    assert line.endswith("; correct it first")


@pytest.mark.parametrize("text", ["print 'loss', loss", "try:\n  x\nexcept IOError, e:\n  pass", "raise IOError, 'x'"])
def test_python_2(tmp_path: Path, text: str) -> None:
    put(tmp_path, train=f"import torch\n{text}\n")
    line = refusal(tmp_path, "train.py", "--target", "cuda")
    assert "(this looks like Python 2); port it to Python 3 first" in line


def test_syntax_error_in_a_module(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN.replace("import torch\n", "import torch\nimport data\n"), data="def f(:\n")
    done = ddpify("train.py", "--target", "cuda", cwd=tmp_path, code=2)
    assert done.stderr.startswith(b"data.py:1: ")
    assert (tmp_path / "train.py").read_text(encoding="utf-8").count("ddpify_runtime") == 0


def test_undecodable(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"import torch\n# caf\xe9\n" + TRAIN.encode())
    line = refusal(tmp_path, "train.py", "--target", "cuda")
    assert line.startswith("train.py:2: byte 0xe9 is not utf-8; save it in UTF-8")


def test_undecodable_late_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"import torch\r\n\r\n\r\n\r\n# caf\xe9\r\n")
    assert refusal(tmp_path, "train.py", "--target", "cuda").startswith("train.py:5: byte 0xe9 is not utf-8")


def test_utf_16(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TRAIN.encode("utf-16"))
    assert refusal(tmp_path, "train.py", "--target", "cuda").startswith("train.py:1: NUL byte in the source")


@pytest.mark.parametrize("cookie", ["nonsense", "hex"])
def test_a_cookie_that_is_no_encoding(tmp_path: Path, cookie: str) -> None:
    put(tmp_path, train=f"# -*- coding: {cookie} -*-\n{TRAIN}")
    assert refusal(tmp_path, "train.py", "--target", "cuda").startswith("train.py:1: ")


def test_an_encoding_that_does_not_come_back_the_same(tmp_path: Path) -> None:
    put(tmp_path, train=f"# -*- coding: utf-7 -*-\nx = '+AGE-'\n{TRAIN}")
    line = refusal(tmp_path, "train.py", "--target", "cuda")
    assert line == "train.py:1: utf-7 does not give back the same bytes; save it in UTF-8"


def test_missing_path(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    line = refusal(tmp_path, "train.py", "tain.py", "--target", "cuda")
    assert line == "tain.py: no such file or folder; check the spelling"


def test_path_too_long(tmp_path: Path) -> None:
    assert "name too long" in refusal(tmp_path, "x" * 5000, "--target", "cuda")


def test_folder_without_python_files(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    line = refusal(tmp_path, "docs", "--target", "cuda")
    assert line == "docs: no Python files in this folder; give the folder that holds the scripts"


def test_notebook(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text("{}", encoding="utf-8")
    line = refusal(tmp_path, "train.ipynb", "--target", "cuda")
    assert line == "train.ipynb: a notebook cannot be converted; export it first: jupyter nbconvert --to script"


def test_device_file(tmp_path: Path) -> None:
    assert refusal(tmp_path, "/dev/null", "--target", "cuda").startswith("/dev/null: not a regular file; ")


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_folder_or_nothing_where_a_script_is_started(tmp_path: Path, command: str) -> None:
    (tmp_path / "docs").mkdir()
    assert refusal(tmp_path, command, "docs") == "docs: is a folder; give the script in it"
    assert refusal(tmp_path, command, "gone.py").startswith("gone.py: no such ")


def test_unknown_target(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    line = refusal(tmp_path, "train.py", "--target", "CUDDA")
    known = "cpu, cuda, horovod, ignite, mpi, none, xla, xpu"
    assert line == f"--target: no target 'CUDDA', did you mean 'cuda'?; the targets are {known}"


def test_no_target(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    line = refusal(tmp_path, "train.py")
    assert line == "ddpify: no target; give --target with one of cpu, cuda, horovod, ignite, mpi, none, xla, xpu"


def test_one_output_for_several_files(tmp_path: Path) -> None:
    put(tmp_path, one=TRAIN, two=TRAIN)
    line = refusal(tmp_path, "one.py", "two.py", "--target", "cuda", "-o", "out.py")
    assert line == "ddpify: two outputs for one file, -o out.py; give one script with -o"
    assert "two outputs for one file" in refusal(tmp_path, ".", "--target", "cuda", "-o", "-")


def test_output_onto_a_folder(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "out").mkdir()
    assert refusal(tmp_path, "train.py", "--target", "cuda", "-o", "out").startswith("out: is a folder; ")
    assert refusal(tmp_path, "train.py", "--target", "cuda", "-o", "gone/out.py").startswith("gone/out.py: no folder")


@pytest.mark.parametrize("mode", ["--diff", "--check"])
def test_output_with_a_mode_that_writes_nothing(tmp_path: Path, mode: str) -> None:
    put(tmp_path, train=TRAIN)
    line = refusal(tmp_path, "train.py", "--target", "cuda", mode, "-o", "out.py")
    assert line == f"ddpify: {mode} writes nothing, -o says where to; leave one of them out"


def test_standard_input_among_others(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    line = refusal(tmp_path, "train.py", "-", "--target", "cuda")
    assert line == "ddpify: standard input (-) together with other paths; give it alone"


def test_nested_too_deeply(tmp_path: Path) -> None:
    put(tmp_path, train=f"{TRAIN}x = {'(' * 5000}1{')' * 5000}\n")
    assert refusal(tmp_path, "train.py", "--target", "cuda").startswith("train.py:")


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = "caf\udce9.py"  # the byte 0xE9 alone: a name in Latin-1 on a machine that speaks UTF-8
    (tmp_path / name).write_text(TRAIN, encoding="utf-8")
    done = ddpify(name, "--target", "cuda", cwd=tmp_path, PYTHONUTF8="1")
    assert lines(done.stdout)[0] == r"converted caf\udce9.py for cuda"
