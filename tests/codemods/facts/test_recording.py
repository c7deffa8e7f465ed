"""What is recorded for the devices and not run yet, and what reads it."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.recording import is_step, reads_values

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("line", "reads"), [("print(loss.item())", True), ("total = total + loss", False), ("x = float(loss)", True)]
)
def test_statements_that_read_back(line: str, reads: bool) -> None:
    script = script_of(f"loss = model(x)\n{line}")
    assert reads_values(script, script.tree.body[1:]) is reads


@pytest.mark.parametrize(("line", "answer"), [("optimizer.step()", True), ("x = optimizer.state", False)])
def test_a_step_runs_what_was_recorded(line: str, answer: bool) -> None:
    assert is_step(ast.parse(line).body[0]) is answer
