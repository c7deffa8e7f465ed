"""DDP115: tensor types of the GPU, `torch.cuda.FloatTensor`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.devices import Branches, inside_f_string, quoted_like, source
from ..facts.script import Script
from ..rule import Edit, Finding, Replace, Rule
from ..targets import XLA_MODULES, Target

_TYPE = re.compile(r"torch\.cuda\.(\w+Tensor)")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the types of the CPU where a target has no GPU."""
    if target.name == "cuda":
        return
    dead = Branches(script, target).dead
    for node in script.nodes:
        if isinstance(node, (ast.Attribute, ast.Constant)) and node not in dead and not inside_f_string(script, node):
            yield from _tensor_type(script, target, node)


def _tensor_type(script: Script, target: Target, node: ast.Attribute | ast.Constant) -> Iterator[Edit]:
    """`torch.cuda.FloatTensor`, as a type or as its name."""
    if isinstance(node, ast.Constant):
        found = isinstance(node.value, str) and _TYPE.fullmatch(node.value)
        if found and not isinstance(script.parents[node], ast.Compare):
            yield Replace(node, quoted_like(script, node, f"torch.{found[1]}"), "use the type of the CPU tensors")
    elif _TYPE.fullmatch(script.qualified(node)) and isinstance(node.value, ast.Attribute):
        yield Replace(node, f"{source(script, node.value.value)}.{node.attr}", "use the type of the CPU tensors")
        call = script.parents[node]
        if target.name == "xla" and isinstance(call, ast.Call) and call.func is node:
            yield Replace(call, f"{{}}.to({target.device})", "use the xla device", modules=XLA_MODULES)


RULE = Rule(
    id="DDP115",
    title="Use the CPU's tensor types",
    why="""`torch.cuda.FloatTensor` makes tensors on a GPU, which the other targets do not have (P4, X8).""",
    before="""\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    noise = torch.cuda.FloatTensor(8, 4).normal_()
    loss = model(noise).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)

init_process_group("gloo")

model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    noise = torch.FloatTensor(8, 4).normal_()
    loss = model(noise).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    kinds=("one process", "eager"),
    target="cpu",
)
