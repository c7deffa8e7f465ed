"""Gradients of a batch normalisation over ranks that can be differentiated again."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import get_rank, get_world_size
from ddpify_runtime.forward.batch_norm_gradients import gradients_of_sums
from torch import Tensor

from tests.runtime.processes import run

X = torch.randn(10, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 2
TOWARDS = X.cos()
EPS = 1e-5


def found(dtype: torch.dtype, has_weight: bool, has_bias: bool, in_parts: bool) -> tuple[list[Tensor | None], Tensor]:
    """The gradients of this rank's rows, or of all, and the gradient of what they sum up to."""
    mine = slice(get_rank(), None, get_world_size()) if in_parts else slice(None)
    x = X[mine].to(dtype).requires_grad_()
    weight = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True) if has_weight else None
    bias = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64, requires_grad=True) if has_bias else None
    gradients: list[Tensor | None]
    if in_parts:
        gradients = [*gradients_of_sums(x, weight, bias, EPS, TOWARDS[mine].to(dtype))]
    else:
        wanted = [each for each in (x, weight, bias) if each is not None]
        out = F.batch_norm(x.double(), None, None, weight, bias, training=True, eps=EPS)
        made = iter(torch.autograd.grad(out, wanted, TOWARDS.to(dtype).double(), create_graph=True))
        gradients = [None if each is None else next(made) for each in (x, weight, bias)]
    assert gradients[0] is not None
    (again,) = torch.autograd.grad(gradients[0].double().pow(3).sum(), x)
    return [None if each is None else each.detach().double() for each in gradients], again.double()


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize(("has_weight", "has_bias"), [(True, True), (False, False), (True, False), (False, True)])
def test_first_and_second_derivatives_are_those_of_the_whole_batch(
    world_size: int, has_weight: bool, has_bias: bool
) -> None:
    (of_input, *of_affine), again = run(1, found, torch.float64, has_weight, has_bias, False)[0]
    parts = run(world_size, found, torch.float64, has_weight, has_bias, True)
    for rank, ((part, *_), part_again) in enumerate(parts):
        torch.testing.assert_close(part, of_input[rank::world_size])
        torch.testing.assert_close(part_again, again[rank::world_size])
    for place, whole in enumerate(of_affine, 1):
        summands = [part[place] for part, _ in parts]
        assert (whole is None) == (None in summands)
        if whole is not None:
            torch.testing.assert_close(sum(summands), whole)


def test_in_half_precision_sums_are_of_float32() -> None:
    (whole, *_), _ = run(1, found, torch.bfloat16, True, True, False)[0]
    for rank, ((part, *_), _) in enumerate(run(2, found, torch.bfloat16, True, True, True)):
        torch.testing.assert_close(part, whole[rank::2], rtol=2**-7, atol=2**-8)
