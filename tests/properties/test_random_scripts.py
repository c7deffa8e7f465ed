"""Random scripts, converted and run by 2 to 4 gloo processes, take the steps that one process takes.

A sample here; `make scripts` runs hundreds (DDPIFY_SCRIPTS tells how many, DDPIFY_FIRST_SCRIPT where to begin).
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import socket
import sys
import warnings
from pathlib import Path

import pytest
import torch
from ddpify_codemods import convert
from torch import Tensor

from tests.properties.scripts import script
from tests.runtime.processes import run

FIRST = int(os.environ.get("DDPIFY_FIRST_SCRIPT", "0"))
COUNT = int(os.environ.get("DDPIFY_SCRIPTS", "25"))
TOLERANCE = 1e-11  # relative, in float64: rounding, amplified by some 10 steps


def execute(path: str) -> tuple[list[Tensor], str]:
    """Run a script as __main__; its history and what it printed."""
    warnings.simplefilter("ignore")
    sys.argv = [path]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        history = runpy.run_path(path, run_name="__main__")["history"]
        torch.set_default_dtype(torch.float32)
    return history, printed.getvalue()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_trains_what_one_process_trains(seed: int, tmp_path: Path) -> None:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(script(seed))
    result = convert({before: before.read_text()}, "cpu")[before]
    assert not [finding for finding in result.findings if finding.severity == "refused"], result.findings
    after.write_text(result.code)
    assert "DistributedDataParallel(" in result.code
    ((expected, text),) = run(1, execute, str(before))
    ((alone, alone_text),) = run(1, execute, str(after))
    assert expected and len(alone) == len(expected) and alone_text == text
    assert all(torch.equal(one, two) for one, two in zip(alone, expected, strict=True))
    world_size = 2 + seed % 3
    ranks = run(world_size, execute, str(after), port=free_port())
    assert ranks[0][1] == text
    for history, _ in ranks:
        assert len(history) == len(expected)
    for step, one in enumerate(expected):
        for history, _ in ranks:
            assert torch.equal(history[step], ranks[0][0][step]), f"ranks differ at step {step}"
        difference = float((ranks[0][0][step] - one).norm() / one.norm())
        assert difference <= TOLERANCE, f"step {step}: {difference:.1e}"
