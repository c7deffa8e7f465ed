"""What a script that starts its own processes does outside of them, and how many of them there are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.launch import spawns
from ddpify_codemods.facts.spawned import counts, done_once, is_index, is_number_started
from ddpify_codemods.reading import read

from tests.codemods.checks import script_of, sources_of

SCRIPT = script_of("""
import os, torch
import torch.multiprocessing as mp
def worker(rank, size, rate):
    use(rank, size, rate)
def main():
    size = torch.cuda.device_count()
    os.makedirs('runs')
    mp.spawn(worker, args=(size, 0.1), nprocs=size)
    report()
    print('done')
if __name__ == "__main__":
    main()
""")


def test_how_many_are_started() -> None:
    (spawn,) = spawns(SCRIPT)
    assert sources_of(counts(SCRIPT, spawn) or []) == ["torch.cuda.device_count()"]
    asked = script_of("import torch.multiprocessing as mp\ndef f(r): pass\nmp.spawn(f, nprocs=args.n)")
    assert counts(asked, spawns(asked)[0]) is None


def test_the_index_and_the_number() -> None:
    (spawn,) = spawns(SCRIPT)
    use = next(call for call in SCRIPT.find(ast.Call) if ast.unparse(call.func) == "use")
    assert [is_index(SCRIPT, spawn, each) for each in use.args] == [True, False, False]
    assert [is_number_started(SCRIPT, spawn, each) for each in use.args] == [False, True, False]


def test_what_one_process_does_alone() -> None:
    found = sources_of(done_once(SCRIPT))
    assert "os.makedirs('runs')" in found and "report()" in found and "print('done')" not in found


COUNTED = """\
import os
import sys
import torch
import torch.multiprocessing as mp


def train(rank, n):
    os.mkdir(f"of{{rank}}")


if __name__ == "__main__":
    {0}
    mp.spawn(train, args=(n,), nprocs=n)
    {1}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("n = 2", ["2"]),
        ("n = torch.cuda.device_count()", ["torch.cuda.device_count()"]),
        ("n = min(2, torch.cuda.device_count())", ["min(2, torch.cuda.device_count())"]),
        ("n = int(sys.argv[1])", None),
    ],
)
def test_counts(line: str, expected: list[str] | None) -> None:
    [script] = read({Path("train.py"): COUNTED.format(line, "pass")})[1]
    found = counts(script, spawns(script)[0])
    assert (None if found is None else list(map(ast.unparse, found))) == expected


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [("n = 2", "print('done')", []), ("os.mkdir('a')", "pass", [12]), ("n = 2", "torch.load('a')", [14])],
)
def test_done_once(before: str, after: str, lines: list[int]) -> None:
    [script] = read({Path("train.py"): COUNTED.format(before, after)})[1]
    assert [each.lineno for each in done_once(script)] == lines
