"""A loss that is a sum over the batch is scaled (DDP606)."""

from __future__ import annotations

from tests.codemods.plain.test_followed import plain, training


def test_a_sum_over_samples_is_scaled() -> None:
    result = plain(training('F.cross_entropy(model(x), y, reduction="sum") / 8'))
    assert "(loss * dist.get_world_size()).backward()" in result.code
