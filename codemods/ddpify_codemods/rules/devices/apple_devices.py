"""DDP133: a script that knows Apple's GPU alone takes the target's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...facts.devices import branches_of, inside_f_string, quoted_like
from ...facts.places import asks_which_device, device_place
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_DEVICE = re.compile(r"mps(:\d+)?")
_ASKS = frozenset({"torch.backends.mps.is_available", "torch.backends.mps.is_built", "torch.mps.is_available"})
# What torch.mps has, and the modules of other GPUs under the same name, with the same arguments.
_FUNCTIONS = frozenset({"torch.mps.empty_cache", "torch.mps.manual_seed", "torch.mps.synchronize"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Name the target's GPUs where a file names Apple's, and no other: one that names both asks for them in the run."""
    if not target.module or "mps" not in script.text or any(map(_is_cuda, script.nodes)):
        return
    message, branches = f"use the {target.name} device", branches_of(script, target)
    for node in script.find(ast.Constant, ast.Call):
        if inside_f_string(script, node):
            continue
        name = script.qualified(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and (name in _ASKS or name in _FUNCTIONS):
            function = "is_available" if name in _ASKS else name.rpartition(".")[2]
            yield Replace(node.func, f"{target.module}.{function}", message, modules=("import torch",))
        elif _is_apple(node) and (device_place(branches, node) or asks_which_device(script, node)):
            yield Replace(node, quoted_like(script, node, target.device_type), message)


def _is_cuda(node: ast.AST) -> bool:
    """Whether something names other GPUs: `"cuda:0"`, `torch.cuda`, `model.cuda()`."""
    named = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda")
    return named or (isinstance(node, ast.Attribute | ast.alias) and "cuda" in ast.unparse(node))


def _is_apple(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_DEVICE.fullmatch(node.value))


RULE = Rule(
    id="DDP133",
    title="Take the target's GPUs for Apple's",
    why="""\
A script written on a Mac names `mps` where there is a GPU, and the CPU where there is none: on a machine with other
GPUs each process would train on the CPU, or end because there is no such device (P4). Where a file knows the other
GPUs, too, it takes them by itself.""",
    before="""\
import torch
from torch import nn

device = torch.device("mps" if torch.backends.mps.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)
from torch import nn

init_process_group("nccl")

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
)
