"""One voice: what becomes of stdout where a script puts a stream of its own in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.test_process_group import TORCHRUN, start

# As in many projects on re-identification: the console and a file, synced at every flush.
TEE = """
import io, os
class Logger:
    def __init__(self, path):
        self.console = sys.stdout
        self.file = open(rank_zero_path(path), "w")
    def write(self, text):
        self.console.write(text)
        self.file.write(text)
    def flush(self):
        self.console.flush()
        self.file.flush()
        os.fsync(self.file.fileno())
    def close(self):
        self.console.close()
        self.file.close()
"""


def test_streams_of_the_script_are_written_once(tmp_path: Path) -> None:
    lines = """
kept = sys.stdout
sys.stdout = Logger("first")
print("one", flush=True)
sys.stdout.file.close()
sys.stdout = kept
print("two")
sys.stdout = open(rank_zero_path("second"), "w")
print("three")
sys.stdout.close()
sys.stdout = sys.__stdout__
print("four")
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", line_buffering=True)
print("five")
sys.stdout = sys.stderr = Logger("third")
print("six")
"""
    done = start(tmp_path, TEE + lines, *TORCHRUN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "world 2 ['--x', '1']\none\ntwo\nfour\nfive\nsix\n"
    assert [(tmp_path / name).read_text() for name in ("first", "second", "third")] == ["one\n", "three\n", "six\n"]


@pytest.mark.nightly
def test_a_console_that_is_closed_leaves_errors_their_way(tmp_path: Path) -> None:
    lines = 'sys.stdout = Logger("log")\nsys.stdout.close()\nif get_rank() == 1: raise ValueError("rank 1 is unwell")'
    done = start(tmp_path, TEE + lines, *TORCHRUN)
    assert done.returncode == 1
    assert "rank 1 is unwell" in done.stderr


def test_every_kind_of_log_handler_is_silent() -> None:
    """One that keeps no stream, as dill makes it when torch is imported, cannot be given another: it needs none."""
    script = """
import logging, sys
from ddpify_runtime.agreement.standard_streams import silence
for handler in (logging._StderrHandler(), logging.StreamHandler(sys.stdout), logging.StreamHandler(sys.stderr)):
    logging.getLogger().addHandler(handler)
logging.warning("heard")
silence()
logging.warning("unheard")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).splitlines() == ["heard"] * 3


def test_bars_of_progress_are_drawn_nowhere(tmp_path: Path) -> None:
    """The package keeps the stderr of its import."""
    (tmp_path / "progress.py").write_text(
        "from sys import stderr\nclass Infinite:\n    file = stderr\n", encoding="utf-8"
    )
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import progress
from ddpify_runtime.agreement.standard_streams import silence
print("heard", file=progress.Infinite().file)
silence()
print("unheard", file=progress.Infinite().file)
"""
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "heard\n"


def test_what_was_told_before_where_to_write_writes_nowhere() -> None:
    """A name, a default of a function, loguru; what ends the run is still said."""
    script = """
import sys
from sys import stderr, stdout
import loguru
from ddpify_runtime.agreement import standard_streams
def show(text, file=sys.stderr):
    print(text, file=file)
def say(text):
    show(text)
    stdout.write(text)
    stdout.writelines([text])
    print(text, file=stderr)
    loguru.logger.info(text)
say("heard ")
standard_streams.silence()
say("unheard ")
print("the end", file=standard_streams.STDERR)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "heard heard "
    assert "unheard" not in done.stderr and done.stderr.count("heard") == 3 and done.stderr.endswith("the end\n")
