"""DDP115: tensor types of the GPU, `torch.cuda.FloatTensor`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...facts.devices import branches_of, inside_f_string, quoted_like, source
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

TYPE = re.compile(r"torch\.cuda\.(\w+Tensor)")
_REMEDY = "write torch.tensor(…, device=…), torch.zeros(…) or tensor.to(…, torch.float32) instead"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the types of the target's own tensors where it has no GPU."""
    if target.has_cuda_words:
        return
    dead = branches_of(script, target).dead
    for node in script.nodes:
        if node in dead or inside_f_string(script, node):
            continue
        if isinstance(node, ast.Constant):
            found = _named(script, target, node)
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
            found = _tensor_type(script, target, node)
        else:
            continue
        for edit in found:
            if target.tensor_types:
                yield edit
            else:
                message = f"torch has no such types for the {target.name} device"
                yield Finding(RULE.id, "refused", node.lineno, message, _REMEDY)


def _named(script: Script, target: Target, node: ast.Constant) -> Iterator[Edit]:
    """A type by its name, as `.type()` gives and takes it; asked for a GPU's, a tensor on the CPU says no."""
    found = isinstance(node.value, str) and TYPE.fullmatch(node.value)
    if found and (target.is_accelerator or not isinstance(script.parents[node], ast.Compare)):
        name = f"torch.{target.device_type}.{found[1]}" if target.is_accelerator else f"torch.{found[1]}"
        yield Replace(node, quoted_like(script, node, name), _message(target))


def _tensor_type(script: Script, target: Target, node: ast.Attribute | ast.Name) -> Iterator[Edit]:
    """`torch.cuda.FloatTensor`, however it is imported, or `torch.cuda` where types are taken from it later."""
    name = script.qualified(node)
    if name == "torch.cuda" and _is_chosen(script, node):
        yield _replaced(script, target, node, "")
    elif found := TYPE.fullmatch(name):
        yield _replaced(script, target, node, f".{found[1]}")


def _is_chosen(script: Script, node: ast.expr) -> bool:
    """Whether a module is one of two that a name is given: `T = torch.cuda if use_cuda else torch`."""
    parent = script.parents[node]
    if not isinstance(parent, ast.IfExp) or node is parent.test:
        return False
    return {"torch", "torch.cuda"} == {script.qualified(parent.body), script.qualified(parent.orelse)}


def _message(target: Target) -> str:
    return f"use the type of the {target.name} device's tensors"


def _replaced(script: Script, target: Target, node: ast.Attribute | ast.Name, attribute: str) -> Edit:
    message = _message(target)
    if target.is_accelerator:
        return Replace(node, f"{target.tensor_types}{attribute}", message, modules=target.modules)
    base = node.value if isinstance(node, ast.Attribute) else None
    if attribute:
        base = base.value if isinstance(base, ast.Attribute) else None
    if base is not None and script.qualified(base) == "torch":
        return Replace(node, f"{source(script, base)}{attribute}", message)
    return Replace(node, f"torch{attribute}", message, modules=("import torch",))


RULE = Rule(
    id="DDP115",
    title="Use the target's tensor types",
    why="""`torch.cuda.FloatTensor` makes tensors on a GPU, which the other targets do not have (P4, X8). For CPUs it
becomes `torch.FloatTensor`. XLA devices have no such types in torch: the runtime has them
(`ddpify_runtime.xla.FloatTensor`), to be called, asked by isinstance and given to `.type(...)`.""",
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
    target="cpu",
)
