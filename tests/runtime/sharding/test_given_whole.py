"""Weights that a forward is given, of which the rows of some ranks make no use: as in one process, and none waits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from ..processes import run


class Chosen(nn.Module):
    """Each sample is computed with the weights that it chooses; nobody chooses the third.

    inside: whether the loss is computed in the forward.
    """

    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.inside = inside

    def forward(self, x: Tensor, first: Tensor, second: Tensor, third: Tensor, y: Tensor) -> Tensor:
        scores: Tensor = self.layer(x)
        for weights, rows in ((first, x[:, 0] > 0), (second, x[:, 0] <= 0), (third, x[:, 0] > 1e6)):
            if len(x[rows]):
                scores = scores.index_put((rows,), F.linear(x[rows], weights), accumulate=True)
        return F.cross_entropy(scores, y) if self.inside else scores


def gradients(inside: bool, by_grad: bool) -> tuple[list[Tensor | None], list[Tensor]]:
    """Of the given weights and of the model, in five steps; in the last one, ranks of two choose other weights."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Chosen(inside).double())
    weights = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    found: list[Tensor | None] = []
    for step in range(5):
        x, y = torch.randn(12, 4, dtype=torch.float64), torch.randint(3, (12,))
        if step == 4:
            x[:, 0] = torch.tensor([1.0, -1.0] * 6)
        result = model(x, *weights, y)
        loss = result if inside else F.cross_entropy(result, y)
        if by_grad:
            found += torch.autograd.grad(loss, weights, allow_unused=True)
            continue
        loss.backward()
        for each in weights:
            found.append(each.grad)
            each.grad = None
    return found, [] if by_grad else [each.grad for each in model.parameters() if each.grad is not None]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("inside", "by_grad"), [(False, False), (True, False), (False, True)])
@pytest.mark.filterwarnings("ignore:ddpify")
def test_gradients_are_those_of_one_process(ranks: int, inside: bool, by_grad: bool) -> None:
    ((alone, own),) = run(1, gradients, inside, by_grad)
    for given, mine in run(ranks, gradients, inside, by_grad):
        for ours, true in zip([*given, *mine], [*alone, *own], strict=True):
            assert (ours is None) == (true is None)
            assert ours is None or (ours - true).norm() <= 1e-13 * true.norm()
