"""What the rules for distributed scripts recommend runs, on two processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from ddpify_codemods import RULES, Rule

from tests.runtime.processes import run

ON_CPUS = [rule for rule in RULES if rule.folder == "lint" and "cuda" not in rule.after]
_SET_UP = ('dist.init_process_group("gloo")\n', 'os.environ["MASTER_ADDR"]', 'os.environ["MASTER_PORT"]')


@pytest.mark.parametrize("rule", ON_CPUS, ids=lambda rule: rule.id)
@pytest.mark.filterwarnings("ignore")
def test_what_is_put_right_by_hand_runs(rule: Rule, tmp_path: Path) -> None:
    lines = [line for line in rule.after.splitlines(keepends=True) if not line.startswith(_SET_UP)]
    assert run(2, execute, "".join(lines), tmp_path) == ["ran", "ran"]


def execute(script: str, folder: Path) -> str:
    os.chdir(folder)
    sys.argv = ["train.py", "--batch-size", "8"]
    exec(compile(script, "train.py", "exec"), {"__name__": "__main__"})
    return "ran"
