"""DDP306: hooks of the backward pass, gradients written by hand."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.gradient_hooks import RULE

from ..checks import assert_refused, assert_silent


@pytest.mark.parametrize(
    "source",
    [
        "layer.register_forward_hook(f)",
        "p.grad = None",
        "p.grad.zero_()",
        "p.grad.data.clamp_(-1, 1)",
        "p.grad *= 2",
        "p.grad = torch.zeros_like(p)",
        "p.grad.data = p.grad.data / 2",
        "norm = p.grad.norm()",
        "self.grad = None",
        "self.grad = grad",
        "p.grad[0] = 0",
        "g = scale * p.grad.data\nm = g.sum(1, keepdim=True)\np.grad.data = m.mul(sign)",
    ],
)
def test_finished_gradients(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize(
    "source",
    [
        "x.register_hook(lambda g: g * 2)",
        "model.register_full_backward_hook(f)",
        "p.register_post_accumulate_grad_hook(f)",
        "p.grad = g",
        "p.grad.data = g.data",
        "shared._grad = p.grad",
        "a = p.grad = g",
        "p.grad = g; g = other.grad; other = g",
    ],
)
def test_gradients_in_the_making(source: str) -> None:
    assert_refused(RULE, source, line=1)
