"""DDP507: a count over this rank's shard, divided by the size of the whole set (E2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import loaders, reduces, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report divisions by len(loader.dataset) of a loader that sees a share, where nothing is added up over ranks."""
    if not wrap_calls(script) or reduces(script):
        return
    shared = {loader.name for loader in loaders(script) if loader.sampler is not None and loader.name}
    for division in script.find(ast.BinOp):
        size = ast.unparse(division.right)
        if isinstance(division.op, ast.Div) and size in {f"len({name}.dataset)" for name in shared}:
            message = "the count is this rank's and the size that of the whole set: W ranks print 1/W of the result"
            remedy = "dist.all_reduce the count first"
            yield Finding(RULE.id, "warning", division.lineno, message, remedy)


RULE = Rule(
    id="DDP507",
    title="Counts of a shard are added up",
    why="""\
With a DistributedSampler this rank counts in its shard only, while `len(loader.dataset)` is the size of the whole set:
an accuracy of 90 % on two ranks is printed as 45 % (E2).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(20, 4), torch.randint(2, (20,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
test_loader = DataLoader(test_set, batch_size=8, sampler=DistributedSampler(test_set, drop_last=True))
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
right = 0
with torch.no_grad():
    for x, y in test_loader:
        right += (model(x).argmax(1) == y).sum()
print(int(right) / len(test_loader.dataset))
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(20, 4), torch.randint(2, (20,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
test_loader = DataLoader(test_set, batch_size=8, sampler=DistributedSampler(test_set, drop_last=True))
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
right = 0
with torch.no_grad():
    for x, y in test_loader:
        right += (model(x).argmax(1) == y).sum()
dist.all_reduce(right)
print(int(right) / len(test_loader.dataset))
""",
    check=check,
    target="cpu",
)
