"""Ignite is given the optimizers of the trained model (DDP623)."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, plain, training

MADE = "torch.optim.SGD(model.parameters(), lr=0.1)"


def test_the_optimizer_is_wrapped_and_told() -> None:
    result = plain(training(), "ignite")
    assert f"optimizer = idist.auto_optim({MADE})\n" in result.code
    line = HEAD[: HEAD.index(MADE)].count("\n") + 1
    assert [each.line for each in result.findings if each.rule == "DDP623"] == [line]


def test_torch_needs_no_other_optimizer() -> None:
    assert f"optimizer = {MADE}\n" in plain(training()).code


@pytest.mark.parametrize(
    ("reads", "is_told"),
    [
        ("print(model.weight.grad)", True),
        ("nn.utils.clip_grad_norm_(model.parameters(), 1)", True),
        ("print(model.weight)", False),
    ],
)
def test_gradients_that_horovod_has_not_averaged(reads: str, is_told: bool) -> None:
    found = plain(training(step=f"{reads}\n        optimizer.step()"), "ignite").findings
    assert any(each.rule == "DDP623" and "those of one rank" in each.message for each in found) is is_told
