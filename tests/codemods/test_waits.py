"""Where a script waits for an optimizer that averages gradients (Horovod's)."""

from __future__ import annotations

import ast

from ddpify_codemods.rule import Edit, Finding, Guard, Insert, Replace
from ddpify_codemods.waits import stepped_once, zeroed

from tests.codemods.checks import script_of

HEAD = "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def said(lines: str) -> list[Edit | Finding]:
    script = script_of(HEAD + lines)
    made = {call for call in script.find(ast.Call) if ast.unparse(call.func) == "torch.optim.SGD"}
    backward = next(call for call in script.find(ast.Call) if ast.unparse(call).endswith(".backward()"))
    waits = stepped_once(script, backward, made, "DDP000", "do it once")
    return [*zeroed(script, made, {"optimizer"}, "DDP000", "leave it out"), *waits]


def test_nothing_waits_where_nobody_looks_at_gradients() -> None:
    assert said("optimizer.zero_grad()\nloss.backward()\noptimizer.step()") == []


def test_averages_are_there_before_gradients_are_clipped() -> None:
    insert, guard = said("loss.backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1)\noptimizer.step()")
    assert isinstance(insert, Insert) and insert.code == "optimizer.synchronize()"
    assert isinstance(guard, Guard) and guard.test == "optimizer.skip_synchronize()" and guard.is_context


def test_two_backward_passes_are_refused() -> None:
    found = said("a.backward()\nb.backward()\noptimizer.step()")
    assert any(isinstance(item, Finding) and item.severity == "refused" for item in found)


def test_zero_grad_takes_no_argument() -> None:
    (replaced,) = said("optimizer.zero_grad(set_to_none=True)\nloss.backward()\noptimizer.step()")
    assert isinstance(replaced, Replace)
    (refused,) = said("optimizer.zero_grad(set_to_none=False)\nloss.backward()\noptimizer.step()")
    assert isinstance(refused, Finding)
