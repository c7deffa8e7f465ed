"""Training loaders with collate functions of the script's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

HEAD = """\
import torch
import functools
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, default_collate
torch.manual_seed(0)
data = TensorDataset(torch.rand(32, 4), torch.randint(3, (32,)))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def stack(batch):
    return torch.stack([b[0] for b in batch]), torch.stack([b[1] for b in batch])
def couple(batch):
    x, y = stack(batch)
    return x - x.mean(0), y
"""
TRAINS = """
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
STACK = [
    """\
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=stack)
""",
    """\
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=functools.partial(stack))
""",
    """\
class D(TensorDataset):
    @staticmethod
    def c(batch):
        return stack(batch)
data = D(torch.rand(32, 4), torch.randint(3, (32,)))
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=D.c)
""",
    """\
class C:
    def __call__(self, batch):
        return stack(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=C())
""",
    """\
def c(batch):
    return [torch.stack(x) for x in zip(*batch)]
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
]
OTHERS = [
    """\
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=couple)
""",
    """\
import sys
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=stack if len(sys.argv) > 1 else couple)
""",
    """\
import sys, other
c = stack
if len(sys.argv) > 1:
    c = other.collate
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
def my_partial(f):
    return lambda b: f(b[:4])
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=my_partial(stack))
""",
    """\
def twice(f):
    return lambda b: f(b + b)
@twice
def c(batch):
    return stack(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
def twice(f):
    return lambda b: f(b + b)
@twice
def s(batch):
    return torch.stack([b[0] for b in batch]), torch.stack([b[1] for b in batch])
def c(batch):
    return s(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=stack)
loader.collate_fn = couple
""",
    """\
def stack(batch):
    x = torch.stack([b[0] for b in batch])
    return x - x.mean(0), torch.stack([b[1] for b in batch])
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=stack)
""",
    """\
def stack(batch):
    x = torch.stack([b[0] for b in batch])
    return x - x.mean(0), torch.stack([b[1] for b in batch])
def c(batch):
    return stack(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
stack = couple
def c(batch):
    return stack(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
class C:
    n = 0
    def __call__(self, batch):
        self.n += 1
        x, y = stack(batch)
        return x * self.n, y
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=C())
""",
    """\
import mine as torch2
def c(batch):
    return torch2.stack([b[0] for b in batch]), torch2.stack([b[1] for b in batch])
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
def sorted(x):
    return x[:2]
def c(batch):
    batch = sorted(batch)
    return stack(batch)
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
    """\
def zip(*x):
    return [a[:2] for a in __builtins__.zip(*x)]
def c(batch):
    return [torch.stack(x) for x in zip(*batch)]
loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=c)
""",
]


def is_divided(source: str) -> bool:
    path = Path("train.py")
    return "DistributedDataParallel" in convert({path: HEAD + source + TRAINS}, "cpu", style="plain")[path].code


@pytest.mark.parametrize("source", STACK)
def test_a_function_that_stacks(source: str) -> None:
    assert is_divided(source)


@pytest.mark.parametrize("source", OTHERS)
def test_one_that_does_not_or_may_be_another(source: str) -> None:
    """Another by a decorator, an assignment, a wrapper, or a name that stands for something else."""
    assert not is_divided(source)
