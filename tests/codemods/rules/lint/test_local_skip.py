"""Batches that one rank leaves out (DDP523)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.local_skip import RULE

from .wrapped import STEP, told

FIRST, _, REST = STEP.partition("loss.backward()\n")
SKIPS = "if torch.isnan(loss):"


def _step(test: str, body: str = "continue") -> str:
    return f"{FIRST}{test}\n    {body}\nloss.backward()\n{REST}"


def test_a_rank_that_skips_its_backward_pass() -> None:
    assert told(RULE, step=_step(SKIPS)) == [SKIPS]
    assert not told(RULE, step=_step(SKIPS), is_wrapped=False)


@pytest.mark.parametrize(
    "step",
    [
        _step("if len(x) < 8:"),
        _step(SKIPS, "print(loss)"),
        f"{STEP}{SKIPS}\n    continue\n",
        _step(f"dist.all_reduce(loss)\n{SKIPS}"),
    ],
)
def test_what_does_not_skip_alone(step: str) -> None:
    assert not told(RULE, step=step)


HELPER = """\
def mean_over_ranks(value):
    total = value.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def halved(value):
    return value / 2


"""


def test_a_test_that_asks_all_ranks_by_a_function() -> None:
    all_ask = "if torch.isnan(mean_over_ranks(loss)):"
    assert not told(RULE, before=HELPER, step=_step(all_ask))
    assert not told(RULE, before=HELPER, step=_step("if not torch.isfinite(loss.new_tensor(mean_over_ranks(loss))):"))
    for alone in (SKIPS, "if torch.isnan(halved(loss)):"):
        shown = f"print(mean_over_ranks(loss))\n{_step(alone)}"
        assert told(RULE, before=HELPER, step=shown) == [alone]
