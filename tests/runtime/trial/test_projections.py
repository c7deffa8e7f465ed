"""A few random sums of a tensor's numbers stand for all of them where two tensors are compared."""

from __future__ import annotations

import torch
from ddpify_runtime.trial.projections import projected


def test_projections_keep_a_norm() -> None:
    torch.manual_seed(0)
    flat = [torch.randn(5), torch.randn(64), torch.randn(3, dtype=torch.complex64), torch.randn(70, 1000)]
    of_low_rank = [torch.outer(torch.randn(50), torch.randn(999)).bfloat16(), torch.ones(129, 3)]
    for numbers, tensor in zip(projected(flat + of_low_rank), flat + of_low_rank, strict=True):
        assert 0.25 < float(numbers.norm()) / float(tensor.abs().double().norm()) < 2.5


def test_projections_add_up() -> None:
    one, other = torch.randn(2, 3, 500, dtype=torch.float64)
    torch.testing.assert_close(projected([one]) + projected([other]), projected([one + other]))
    assert projected([]).shape == (0, 64)
