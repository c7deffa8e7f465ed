"""Tensors that are learned beside models: their gradients would stay those of each rank."""

from __future__ import annotations

import pytest

from ...plain.test_followed import CE, HEAD, LOOP, plain, refusals

OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def trained(optimizer: str, loss: str) -> str:
    """A script that trains with an optimizer of its own."""
    return HEAD.replace(OPTIMIZER, optimizer) + LOOP.format(loss=loss, step="optimizer.step()")


@pytest.mark.parametrize(
    "optimizer",
    [
        "t = nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([*model.parameters(), t], lr=0.1)\n",
        "t = torch.ones(1, requires_grad=True)\noptimizer = torch.optim.SGD(list(model.parameters()) + [t], lr=0.1)\n",
        "t = torch.ones(1).requires_grad_()\n"
        "optimizer = torch.optim.SGD([{'params': model.parameters()}, {'params': [t]}], lr=0.1)\n",
        "t = nn.Parameter(torch.ones(1))\nall_of = list(model.parameters())\nall_of.append(t)\n"
        "optimizer = torch.optim.SGD(all_of, lr=0.1)\n",
        "t = nn.Parameter(torch.ones(1))\n\n\ndef make(model, learned):\n"
        "    return torch.optim.SGD([*model.parameters(), learned], lr=0.1)\n\n\noptimizer = make(model, t)\n",
    ],
)
def test_a_tensor_beside_a_model_is_refused(optimizer: str) -> None:
    found = refusals(plain(trained(optimizer, "F.cross_entropy(model(x) / t, y)")))
    assert any("belongs to no module" in each for each in found)


@pytest.mark.parametrize(
    "optimizer",
    [
        OPTIMIZER,
        "t = torch.ones(1)\noptimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)\n",
        "optimizer = torch.optim.SGD([{'params': model.parameters(), 'lr': 0.1}], lr=0.2)\n",
    ],
)
def test_parameters_of_modules_are_not(optimizer: str) -> None:
    assert not refusals(plain(trained(optimizer, CE)))


def test_rows_put_to_a_batch_are_refused() -> None:
    pad = "F.cross_entropy(model(torch.cat([x, torch.zeros(8 - len(x), 4)])), y)"
    assert refusals(plain(trained(OPTIMIZER, pad)))
