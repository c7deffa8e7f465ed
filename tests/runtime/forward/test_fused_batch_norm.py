"""What is sent around the kernels of accelerators, with such as the host can run; tests/gpu has the real ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import get_rank, get_world_size
from ddpify_runtime.forward.fused_batch_norm import Normalise
from torch import Tensor, nn

from tests.runtime.processes import run

X = torch.randn(11, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3 + 5
WEIGHT, BIAS = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
TOWARDS = X.sin()  # the gradient of what comes out
DIMS = (0, 2)


def stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean of each channel and one over its deviation, as all of these kernels after their CUDA sources."""
    return input.mean(DIMS), (input.var(DIMS, correction=0) + eps).rsqrt()


def gather(
    input: Tensor, means: Tensor, scales: Tensor, running_mean: Any, running_var: Any, momentum: float, eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    weights = (counts / counts.sum())[:, None]
    mean = (weights * means).sum(0)
    variance = (weights * (scales**-2 - eps + (means - mean) ** 2)).sum(0)
    if running_mean is not None:
        running_mean.lerp_(mean, momentum)
        running_var.lerp_(variance * counts.sum() / (counts.sum() - 1), momentum)
    return mean, (variance + eps).rsqrt()


def elemt(input: Tensor, weight: Any, bias: Any, mean: Tensor, scale: Tensor, eps: float) -> Tensor:
    normal = (input - mean[:, None]) * scale[:, None]
    return normal if weight is None else normal * weight[:, None] + bias[:, None]


def backward_reduce(
    gradient: Tensor, input: Tensor, mean: Tensor, scale: Tensor, weight: Any, *wanted: bool
) -> tuple[Tensor, ...]:
    product = (gradient * (input - mean[:, None])).sum(DIMS)
    return gradient.sum(DIMS), product, product * scale, gradient.sum(DIMS)


def backward_elemt(
    gradient: Tensor, input: Tensor, mean: Tensor, scale: Tensor, weight: Any, of_sum: Tensor, of_product: Tensor,
    counts: Tensor,
) -> Tensor:  # fmt: skip
    centred = (input - mean[:, None]) * (of_product / counts.sum() * scale**2)[:, None]
    factor = scale if weight is None else scale * weight
    return (gradient - (of_sum / counts.sum())[:, None] - centred) * factor[:, None]


KERNELS = {
    **{"batch_norm_stats": stats, "batch_norm_gather_stats_with_counts": gather, "batch_norm_elemt": elemt},
    **{"batch_norm_backward_reduce": backward_reduce, "batch_norm_backward_elemt": backward_elemt},
}


def normalised(affine: bool, penalty: bool, in_parts: bool = True) -> dict[str, Tensor]:
    """What comes of this rank's rows, or of all of them; sums over rows are those of the rank."""
    mine = slice(get_rank(), None, get_world_size()) if in_parts else slice(None)
    x, towards = X[mine].clone().requires_grad_(), TOWARDS[mine]
    weight, bias = (nn.Parameter(each.clone()) if affine else None for each in (WEIGHT, BIAS))
    mean, variance = X.new_zeros(3), X.new_ones(3)
    if in_parts:
        vars(torch).update(KERNELS)
        out: Tensor = Normalise.apply(x, weight, bias, mean, variance, 0.1, 1e-5)  # type: ignore[no-untyped-call]
    else:
        out = F.batch_norm(x, mean, variance, weight, bias, training=True)
    total = (out * towards).sum()
    if penalty:
        (slope,) = torch.autograd.grad(total, x, create_graph=True)
        total = slope.square().sum()
    total.backward()
    assert x.grad is not None
    sums = {} if weight is None or bias is None else {"weight": weight.grad, "bias": bias.grad}
    found = {"out": out.detach(), "input": x.grad, "mean": mean, "variance": variance}
    return found | {name: value for name, value in sums.items() if value is not None}


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize(("affine", "penalty"), [(True, False), (False, False), (True, True)])
def test_statistics_are_those_of_all_ranks_rows(world_size: int, affine: bool, penalty: bool) -> None:
    whole = run(1, normalised, affine, penalty, False)[0]
    parts = run(world_size, normalised, affine, penalty)
    for rank, part in enumerate(parts):
        for name in ("out", "input"):
            torch.testing.assert_close(part[name], whole[name][rank::world_size])
        for name in ("mean", "variance"):
            torch.testing.assert_close(part[name], whole[name])
    for name in {"weight", "bias"} & whole.keys():
        torch.testing.assert_close(sum(part[name] for part in parts), whole[name])
