"""Downloads in the plain style: rank 0 goes first (DDP608)."""

import pytest

from tests.codemods.plain.test_followed import plain

TRAINED = """\
import functools
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

{made}
loader = DataLoader(data, batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BEFORE = "if dist.get_rank() != 0:\n    dist.barrier()\n"
AFTER = "if dist.get_rank() == 0:\n    dist.barrier()\n"


@pytest.mark.parametrize("above", ["rate = 0.1\n", "rate = 0.1\n\n# MNIST\n", "rate = 0.1\n# MNIST\n\n"])
def test_the_guard_stands_directly_above_what_it_guards(above: str) -> None:
    made = 'data = datasets.MNIST("data", download=True)\n'
    assert f"{above}{BEFORE}{made}{AFTER}" in plain(TRAINED.format(made=above + made)).code
