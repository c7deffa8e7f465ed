"""Ctrl-C and closed pipes end the command quietly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ddpify.command import COMMAND, TRAIN, environment, put


def test_interrupted(tmp_path: Path) -> None:
    words = [*COMMAND, "-", "--target", "cuda"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b"#" * 2**20)  # more than a pipe holds: once it is written, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.stdin.close()  # Python may have noted the signal just before its next read: let that end
        assert process.stderr.read() == b"ddpify: interrupted\n"
        assert process.wait(60) == 130


@pytest.mark.skipif(sys.platform != "linux", reason="sees its workers in /proc")
def test_interrupted_with_workers(tmp_path: Path) -> None:
    for number in range(300):
        put(tmp_path, **{f"train{number}": TRAIN})
    words = [*COMMAND, ".", "--target", "cuda"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=pipe, stderr=pipe, env=environment(), start_new_session=True
    ) as process:
        assert process.stderr
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text():
            pass
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does: to the workers as well
        assert process.stderr.read() == b"ddpify: interrupted\n"
        assert process.wait(60) == 130
    assert {path.read_text(encoding="utf-8") for path in tmp_path.glob("*.py")} == {TRAIN}
    assert not list(tmp_path.glob(".ddpify-*"))


@pytest.mark.parametrize(
    "words",
    [["--help"], ["rules"], ["explain", "DDP101"], ["train.py", "-t", "cuda", "--diff"], ["train.py", "-t", "cuda"]],
    ids=" ".join,
)
def test_broken_pipe(tmp_path: Path, words: list[str]) -> None:
    put(tmp_path, train=TRAIN)
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, stdout=closed, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    if words[0] == "train.py":
        assert done.returncode == 0
