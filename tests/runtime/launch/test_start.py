"""How a script that was started as one process becomes several."""

from __future__ import annotations

import os
import sys

import pytest
from ddpify_runtime.launch import start

Command = list[str]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    commands: list[Command] = []
    monkeypatch.setattr(os, "execv", lambda path, words: commands.append(words))
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    monkeypatch.setattr(sys, "argv", [__file__, "--lr", "1"])
    return commands


def test_it_becomes_torchrun_for_the_same_command_line(started: list[Command]) -> None:
    start.start_processes(environ={"DDPIFY_NPROC": "4"})
    (words,) = started
    assert words[1:7] == ["-m", "ddpify_runtime.launch", "torchrun", "--standalone", "--nproc-per-node", "4"]
    assert words[-2:] == ["--lr", "1"]


@pytest.mark.parametrize(
    "environ", [{}, {"DDPIFY_NPROC": "1"}, {"DDPIFY_NPROC": "4", "RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}]
)
def test_one_process_stays_one_and_a_launchers_are_enough(started: list[Command], environ: dict[str, str]) -> None:
    start.start_processes(environ=environ)
    assert started == []


def test_a_number_that_is_none(started: list[Command]) -> None:
    with pytest.raises(RuntimeError, match="DDPIFY_NPROC='many' is not a number of processes"):
        start.start_processes(environ={"DDPIFY_NPROC": "many"})
