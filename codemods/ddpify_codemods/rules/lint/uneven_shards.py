"""DDP521: shards cut by hand, of which one may be longer (D6, D19)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import is_rank
from ...facts.hand_written import training_loops, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_EVENS_OUT = ("drop_last=True", "Join(", ".join(", "padding", "pad_", "num_samples", "DistributedSampler(")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report `items[rank::world_size]` in a training script that neither cuts nor pads, nor uses torch's Join."""
    if not wrap_calls(script) or not training_loops(script) or any(word in script.text for word in _EVENS_OUT):
        return
    for node in script.find(ast.Subscript):
        cut = node.slice
        if _is_of_gradients(script, node):
            continue
        if (
            isinstance(cut, ast.Slice)
            and cut.lower is not None
            and is_rank(script, cut.lower)
            and cut.step
            and not cut.upper
        ):
            message = "one rank may get a sample, so a batch, more than another: it then waits for the others for ever"
            remedy = "use DistributedSampler, or cut the list to a multiple of world_size first"
            yield Finding(RULE.id, "warning", node.lineno, message, remedy)


def _is_of_gradients(script: Script, node: ast.AST) -> bool:
    """Whether an autograd function takes its part of what all ranks have computed: no samples."""
    classes = (each for each in script.ancestors(node) if isinstance(each, ast.ClassDef))
    return any(script.qualified(base) == "torch.autograd.Function" for each in classes for base in each.bases)


RULE = Rule(
    id="DDP521",
    title="Every rank makes as many steps",
    why="""\
Every backward pass of DistributedDataParallel waits for all ranks. If `items[rank::world_size]` is longer on some ranks
they start a batch that the others do not have, and the run hangs at the end of the epoch (D19). Also, the last batch
of a shard counts as much as the others in the average, however small it is (D6).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(67, 4), torch.rand(67, 1))
indices = list(range(len(dataset)))[rank::world_size]
loader = DataLoader(Subset(dataset, indices), batch_size=8, shuffle=True)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(67, 4), torch.rand(67, 1))
even = len(dataset) // world_size * world_size
indices = list(range(rank, even, world_size))
loader = DataLoader(Subset(dataset, indices), batch_size=8, shuffle=True)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
