"""DDP701: the script joins no process group, and no longer silences the other ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import is_for_others, is_statement, starts_torchrun
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_LOCAL = "int(os.environ['LOCAL_RANK'])"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out what joins and leaves the group, and what is for other ranks than the first."""
    around = {ast.unparse(ast.parse(line)) for line in target.plain_environment}
    for node in script.find(ast.stmt):
        if is_statement(script, node, "init_process_group", "destroy_process_group"):
            yield Delete(node, "leave out the process group")
        elif starts_torchrun(node):
            yield Delete(node, "start no processes")
        elif is_for_others(script, node):
            yield Delete(node, "leave out what is for the other ranks")
        elif isinstance(node, ast.Expr) and (_takes_device(script, node, target) or ast.unparse(node) in around):
            yield Delete(node, "leave out what a launcher decides")
        elif isinstance(node, ast.Import) and ast.unparse(node) in {*target.plain_modules} - {"import torch"}:
            yield Delete(node, "leave out what the process group needs")
    for call in script.find(ast.Call):
        named = _named_device(script, call)
        if named is not None:
            yield Replace(call, "{}({})", "take the device that the run names", parts=(call.func, named))


def _named_device(script: Script, call: ast.Call) -> ast.expr | None:
    """What names a device of which the kind alone is taken: `torch.device(torch.device(args.device).type)` (DDP103)."""
    kind = call.args[0] if len(call.args) == 1 and script.qualified(call.func) == "torch.device" else None
    if not isinstance(kind, ast.Attribute) or kind.attr != "type" or not isinstance(kind.value, ast.Call):
        return None
    inner = kind.value
    return inner.args[0] if len(inner.args) == 1 and script.qualified(inner.func) == "torch.device" else None


def _takes_device(script: Script, node: ast.Expr, target: Target) -> bool:
    """Whether a statement takes this process's device: `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`."""
    call = node.value
    if not isinstance(call, ast.Call) or script.qualified(call.func) != f"{target.module}.set_device":
        return False
    return [ast.unparse(each) for each in call.args] == [_LOCAL]


RULE = Rule(
    id="DDP701",
    title="Leave torch's process group out",
    why="""\
The inverse of DDP601: one process joins nothing, takes the usual device and prints. A seed that the conversion put in
stays, since it looks like one of the script's own (S1).""",
    before="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1).cuda()
ddp_model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
dist.destroy_process_group()
""",
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
""",
    check=check,
    target="none",
)
