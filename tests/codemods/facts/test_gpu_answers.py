"""What the answer to "is there a GPU?" is used for."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.devices import Branches
from ddpify_codemods.facts.gpu_answers import demands_gpu, in_test, is_harmless, only_reported
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import node_of, script_of

ASK = "torch.cuda.is_available()"


def test_a_script_that_ends_without_a_gpu_demands_one() -> None:
    script = script_of(f"import sys, torch\nif not {ASK}:\n    sys.exit('no GPU')\nif {ASK}:\n    print('yes')")
    demanding, telling = script.find(ast.If)
    branches = Branches(script, TARGETS["cpu"])
    assert isinstance(demanding.test, ast.UnaryOp) and isinstance(demanding.test.operand, ast.Call)
    assert isinstance(telling.test, ast.Call)
    assert demands_gpu(branches, demanding, demanding.test.operand)
    assert not demands_gpu(branches, telling, telling.test)
    assert is_harmless(script, telling) and not is_harmless(script, demanding)
    assert in_test(script, demanding.test.operand, demanding)
    assert not in_test(script, telling.body[0], telling)


@pytest.mark.parametrize(
    ("line", "harmless"),
    [(f"print({ASK})", True), (f"loader = DataLoader(data, pin_memory={ASK})", True), (f"use({ASK})", False)],
)
def test_an_answer_that_is_only_reported(line: str, harmless: bool) -> None:
    script = script_of(f"import torch\nfrom torch.utils.data import DataLoader\n{line}")
    assert only_reported(script, node_of(script, ASK)) is harmless
