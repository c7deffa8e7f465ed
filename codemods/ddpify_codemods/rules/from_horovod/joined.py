"""DDP641: the processes of Horovod are those of torch.distributed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string
from ...facts.f_strings import with_calls_replaced
from ...facts.horovod import horovod_name
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_DIST, _OS = ("import torch.distributed as dist",), ("import os",)
SAID = {
    "init": ("dist.init_process_group()", _DIST),
    "shutdown": ("dist.destroy_process_group()", _DIST),
    "is_initialized": ("dist.is_initialized()", _DIST),
    "rank": ("dist.get_rank()", _DIST),
    "size": ("dist.get_world_size()", _DIST),
    "local_rank": ('int(os.environ["LOCAL_RANK"])', _OS),
    "local_size": ('int(os.environ["LOCAL_WORLD_SIZE"])', _OS),
    "cross_rank": ('int(os.environ["GROUP_RANK"])', _OS),
    "cross_size": ('int(os.environ["GROUP_WORLD_SIZE"])', _OS),
    "barrier": ("dist.barrier()", _DIST),
    "nccl_built": ("dist.is_nccl_available()", _DIST),
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Ask torch.distributed what Horovod is asked."""
    for call in script.find(ast.Call):
        name = horovod_name(script, call.func)
        if name in SAID and not call.args and not call.keywords and not inside_f_string(script, call):
            code, modules = SAID[name]
            yield Replace(call, code, _message(name), modules=modules)
    for text in script.find(ast.JoinedStr):
        if not inside_f_string(script, text):
            yield from _in_text(script, text)


def _message(name: str) -> str:
    return {"init": "join the processes", "shutdown": "leave the processes"}.get(name, "ask torch.distributed")


def _in_text(script: Script, text: ast.JoinedStr) -> Iterator[Edit]:
    calls = [part for part in ast.walk(text) if isinstance(part, ast.Call) and not part.args and not part.keywords]
    names = {ast.unparse(call): name for call in calls if (name := horovod_name(script, call.func)) in SAID}
    said = {call: SAID[name][0] for call, name in names.items()}
    code = with_calls_replaced(script, text, said)
    if code:
        modules = sorted({line for name in names.values() for line in SAID[name][1]})
        yield Replace(text, code, "ask torch.distributed", modules=tuple(modules))


RULE = Rule(
    id="DDP641",
    title="Join the processes with torch instead of Horovod",
    why="""\
torchrun starts the processes and says their ranks in the environment. Horovod's collectives take tensors of GPUs and of
the host; so does a group for which no backend is named, nccl for the former and gloo for the latter. The division of
the data stays what it is: a DistributedSampler is given the same numbers. Started as one process, without torchrun,
Horovod was a group of one; torch needs `torchrun --nproc-per-node 1` for that.""",
    before="""\
import horovod.torch as hvd
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hvd.init()
torch.manual_seed(0)
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
if hvd.rank() == 0:
    print(f"trained by {hvd.size()}")
hvd.shutdown()
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group()
torch.manual_seed(0)
if torch.cuda.is_available():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
sampler = DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank())
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * dist.get_world_size())
ddp_model = DistributedDataParallel(model, broadcast_buffers=False)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(ddp_model(x), y).backward()
        optimizer.step()
if dist.get_rank() == 0:
    print(f"trained by {dist.get_world_size()}")
dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
