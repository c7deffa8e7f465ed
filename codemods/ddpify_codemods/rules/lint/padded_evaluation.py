"""DDP504: evaluation with torch's DistributedSampler, which repeats samples (E1)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.hand_written import feeds_evaluation, loaders
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report evaluation loaders whose DistributedSampler pads the ranks to equal lengths."""
    for loader in loaders(script):
        if loader.sampler is None or any(word.arg == "drop_last" for word in loader.sampler.keywords):
            continue
        if feeds_evaluation(script, loader):
            message = (
                "DistributedSampler repeats samples until all ranks have as many, and the metric counts them twice"
            )
            remedy = (
                "evaluate the whole set on every rank, or Subset(dataset, range(rank, len(dataset), world_size)) of it"
            )
            yield Finding(RULE.id, "note", loader.sampler.lineno, message, remedy)


RULE = Rule(
    id="DDP504",
    title="Evaluation counts each sample once",
    why="""\
DistributedSampler fills up with samples from the beginning until every rank has the same number. In training that is
harmless; a metric over the padded set is not that of the set (E1): up to world_size - 1 samples count twice.""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(21, 4), torch.randint(2, (21,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
test_loader = DataLoader(test_set, batch_size=8, sampler=DistributedSampler(test_set, shuffle=False))
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
right = torch.zeros(1)
with torch.no_grad():
    for x, y in test_loader:
        right += (model(x).argmax(1) == y).sum()
dist.all_reduce(right)
print(right.item() / len(test_set))
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(21, 4), torch.randint(2, (21,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
test_loader = DataLoader(test_set, batch_size=8)
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
right = torch.zeros(1)
with torch.no_grad():
    for x, y in test_loader:
        right += (model.module(x).argmax(1) == y).sum()
print(right.item() / len(test_set))
""",
    check=check,
    target="cpu",
)
