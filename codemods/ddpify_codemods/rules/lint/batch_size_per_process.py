"""DDP520: a batch size that becomes world_size times as large (D5)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...facts.hand_written import feeds_training, loaders, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_IS_MEANT = re.compile(r"per[ _-]?(gpu|device|process|rank|worker|node)|(each|every) (gpu|device|process|rank)|on each")
_KNOWS = re.compile(r"world_size|WORLD_SIZE|device_count|num_replicas|ngpus|n_gpus|num_gpus|effective|global_batch")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report batch sizes from the command line that are used per process, where nothing says that this is meant."""
    if not wrap_calls(script) or _IS_MEANT.search(script.text.lower()):
        return
    for loader in loaders(script):
        size = loader.keywords.get("batch_size")
        if loader.sampler is None or not isinstance(size, ast.Attribute) or not feeds_training(script, loader):
            continue
        if not _is_computed(script, size):
            message = "this is the batch size of each process: with W of them a step sees W times as many samples"
            remedy = "divide it by dist.get_world_size() to train the same thing, or call it the size per process"
            yield Finding(RULE.id, "note", loader.call.lineno, message, remedy)


def _is_computed(script: Script, size: ast.Attribute) -> bool:
    """Whether the size, or a learning rate, is adapted to the number of ranks anywhere."""
    scaled = (node for node in script.find(ast.BinOp) if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mult)))
    return any(
        _KNOWS.search(ast.unparse(node)) and ("batch" in ast.unparse(node) or "lr" in ast.unparse(node))
        for node in scaled
    )


RULE = Rule(
    id="DDP520",
    title="The batch size is that of all ranks",
    why="""\
With DistributedDataParallel `batch_size` counts the samples of one process. The same script on 8 ranks makes an eighth
of the steps with batches 8 times as large, for which its learning rate and schedule were not chosen (D5).""",
    before="""\
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=256)
args = parser.parse_args()
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=args.batch_size, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    after="""\
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=256)
args = parser.parse_args()
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=args.batch_size // world_size, sampler=DistributedSampler(dataset))
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
