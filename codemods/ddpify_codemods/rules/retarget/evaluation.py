"""DDP215: an evaluation runs what each batch has recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.eager import is_loader, is_move
from ...facts.recording import takes_steps, uses_device
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .data import left_on_host

# What runs over the parts of one batch, of a model or of its state, and not over batches.
_PARTS = frozenset({"items", "values", "keys", "parameters", "named_parameters", "buffers", "modules", "children"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert torch_xla.sync() into loops over batches that take no step, unless their loader does so itself."""
    _, loaded = left_on_host(script)
    for loop in script.find(ast.For):
        if any(node in loaded for node in ast.walk(loop.iter)) or not _runs_over_batches(script, loop):
            continue
        if uses_device(script, loop.body) and not takes_steps(script, loop.body):
            message = "run what each batch has recorded"
            ends = isinstance(loop.body[-1], (ast.Break, ast.Return, ast.Raise))
            if ends or any(isinstance(node, ast.Continue) for node in ast.walk(loop)):  # which do not come to the end
                yield Insert(loop.body[0], target.step, message, modules=("import torch_xla",))
            else:
                yield Insert(loop.body[-1], target.step, message, "after", modules=("import torch_xla",))


def _runs_over_batches(script: Script, loop: ast.For) -> bool:
    """Whether a loop runs over a loader, or moves to a device what it gets."""
    if any(is_loader(script, node) for node in ast.walk(loop.iter) if isinstance(node, (ast.Name, ast.Attribute))):
        return True
    method = (
        loop.iter.func.attr if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) else ""
    )
    if method in _PARTS:
        return False
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    moves = (node for each in loop.body for node in ast.walk(each) if isinstance(node, ast.Call) and is_move(node))
    moved = (node for move in moves for node in ast.walk(move.func))
    return any(isinstance(node, ast.Name) and node.id in names for node in moved)


RULE = Rule(
    id="DDP215",
    title="Run each batch of an evaluation on XLA",
    why="""\
A loop that evaluates and adds up on the device, and reads no number before its end, would become one program as long
as the loop, which is compiled for each length (X5). `torch_xla.sync()` runs what a batch has recorded, as
`MpDeviceLoader` does by itself: the loops that get one, and those that train (DDP113), need no other.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    net = torch.nn.Linear(4, 1).to(rank)
    model = DDP(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(rank)).mean().backward()
        optimizer.step()
    total = torch.zeros(1).to(rank)
    with torch.no_grad():
        for (x,) in DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=8):
            total += net(x.to(rank)).sum()
    print(total.item())


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    rank = dist.get_rank()
    net = torch.nn.Linear(4, 1).to(torch_xla.device())
    model = DDP(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()
    total = torch.zeros(1).to(torch_xla.device())
    with torch.no_grad():
        for (x,) in DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=8):
            total += net(x.to(torch_xla.device())).sum()
            torch_xla.sync()
    print(total.item())


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
