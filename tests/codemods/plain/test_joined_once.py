"""What losses take several times is brought together once, under a name of its own."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_joined_loss import WRITER

from .test_followed import CE, plain, refusals, training

ONCE = """\
z = F.normalize(model(x), dim=1)
        likely = (z @ z.t()).log_softmax(1)
        spread = z.std(0).mean()
        loss = spread - likely.diagonal().mean()"""


def test_what_a_loss_takes_several_times_is_brought_together_once() -> None:
    result = plain(training().replace(f"loss = {CE}", ONCE))
    assert not refusals(result)
    assert "gathered_z = differentiable_batch(z)\n        likely = (gathered_z @ gathered_z.t())" in result.code
    assert "spread = gathered_z.std(0)" in result.code and result.code.count("differentiable_batch(z)") == 1


@pytest.mark.parametrize(
    "change", ["z = 2 * z", "z[0] = 0", "z.data.mul_(2)", "z.mul_(2)", "torch.relu_(z)", "scale(z)", "gathered_z = 1"]
)
def test_what_changes_in_between_is_brought_together_again(change: str) -> None:
    source = training().replace(f"loss = {CE}", ONCE.replace("spread =", f"{change}\n        spread ="))
    result = plain(source)
    assert refusals(result) or "gathered_z.std" not in result.code


def test_what_is_taken_in_a_function_of_its_own_is_brought_together_there() -> None:
    loss = "z = model(x)\n        loss = torch.stack([(z @ z.t()).exp().mean() for _ in range(2)]).mean()"
    result = plain(training().replace(f"loss = {CE}", loss))
    assert refusals(result) or result.code.count("differentiable_batch(z)") == 2


def test_no_other_rule_takes_the_name() -> None:
    """What is logged is brought together without gradients, by a helper that is called whole_batch."""
    once = """\
batch = model(x)
        likely = (batch @ batch.t()).log_softmax(1)
        writer.add_histogram("z", batch)
        loss = likely.diagonal().mean()"""
    result = plain(WRITER + training().replace(f"loss = {CE}", once))
    assert not refusals(result)
    assert "gathered_batch = differentiable_batch(batch)" in result.code
    assert "whole_batch_ = whole_batch(batch)" in result.code and "whole_batch =" not in result.code
