"""The optimizer's step that follows a backward pass."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.following_step import following_steps

from tests.codemods.checks import script_of, sources_of

HEAD = "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def found(source: str) -> tuple[str, list[str], list[tuple[str, bool]]]:
    script = script_of(HEAD + source)
    made = {call for call in script.find(ast.Call) if ast.unparse(call.func) == "torch.optim.SGD"}
    backward = next(call for call in script.find(ast.Call) if ast.unparse(call).endswith(".backward()"))
    at, between, steps = following_steps(script, backward, made)
    return ast.unparse(at), sources_of(between), [(step.optimizer, step.is_scaled) for step in steps]


def test_the_step_and_what_stands_before_it() -> None:
    at, between, steps = found("loss.backward()\nclip(model)\noptimizer.step()")
    assert at == "loss.backward()" and "clip(model)" in between
    assert steps == [("optimizer", False)]


def test_a_scaler_steps_for_an_optimizer() -> None:
    _, _, steps = found("scaler = torch.amp.GradScaler()\nscaler.scale(loss).backward()\nscaler.step(optimizer)")
    assert steps == [("optimizer", True)]


def test_no_step_may_follow() -> None:
    assert found("loss.backward()\nprint(loss)")[2] == []
