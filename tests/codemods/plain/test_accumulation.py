"""Gradients that accumulate are averaged once for each step, where it can be seen when that is."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

LOOP = """\
steps = 0
for epoch in range(2):
    for i, (x, y) in enumerate(train_loader):
        {first}
        loss = F.cross_entropy(model(x), y) / 4
        loss.backward()
        {between}
        if {test}:
            optimizer.step()
            optimizer.zero_grad()
"""


def code(test: str = "(i + 1) % 4 == 0", first: str = "pass", between: str = "pass") -> str:
    """A conversion of a loop that makes several backward passes for a step."""
    result = plain(HEAD + LOOP.format(test=test, first=first, between=between))
    assert not refusals(result)
    return result.code


@pytest.mark.parametrize("behind", ["optimizer.step()", "print(model.weight.grad)"])
def test_what_is_left_behind_the_loop_is_averaged_where_it_is_used(behind: str) -> None:
    once = LOOP.format(test="(i + 1) % 4 == 0", first="pass", between="pass")
    result = plain(HEAD + once + f"    {behind}\n")
    assert "require_backward_grad_sync" not in result.code


@pytest.mark.parametrize("test", ["(i + 1) % 4 == 0", "i % 4 == 3 or i + 1 == len(train_loader)"])
def test_the_pass_before_a_step_averages(test: str) -> None:
    assert f"        ddp_model.require_backward_grad_sync = {test}\n        loss = " in code(test)


def test_steps_that_are_counted_before_the_forward() -> None:
    counted = code(test="steps % 4 == 0", first="steps += 1")
    assert (
        "        steps += 1\n        ddp_model.require_backward_grad_sync = steps % 4 == 0\n        loss = " in counted
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"between": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"},
        {"between": "print(model.weight.grad.norm())"},
        {"between": "i += 1"},
        {"test": "steps % 4 == 0", "between": "steps += 1"},
        {"test": "steps % 48 == 0", "first": "steps += len(x)"},
        {"test": "last", "first": "last = i == 3"},
        {"test": "random.random() < 0.5"},
        {"test": "loss.item() < 1"},
        {"test": "True"},
    ],
)
def test_where_gradients_are_read_or_the_step_is_not_foreseen_each_pass_averages(changed: dict[str, str]) -> None:
    assert "require_backward_grad_sync" not in code(**changed)
