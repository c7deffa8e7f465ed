"""DDP122: what a script asks of torch.cuda, it asks of the module of the target's own devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

# What torch.cuda and torch.xpu both have (torch 2.13), as far as scripts use it; torch_npu's module has it too.
_SHARED = frozenset(
    {
        "current_device", "current_stream", "device", "device_count", "device_of", "empty_cache",
        "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all",
        "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
        "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
        "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed",
        "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
        "Event", "Stream",
    }
)  # fmt: skip
_OTHER_RULES = ("torch.cuda.amp.",)  # DDP112; the types of tensors are DDP115's


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Name the target's module where one script names torch.cuda."""
    if not target.renames:
        return
    message = f"ask {target.module}"
    for node in script.nodes:
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        if inside_f_string(script, node):
            yield from _in_text(script, target, node)
            continue
        name = script.qualified(node)
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
            yield Replace(node, f"{{}}.is_{target.device_type}", message, parts=(node.value,))
        elif name == "torch.cuda" and _word_after(script, node) in _SHARED:
            yield Replace(node, target.module, message, modules=("import torch",))
        elif isinstance(node, ast.Name) and name.startswith("torch.cuda.") and name.rpartition(".")[2] in _SHARED:
            yield Replace(node, name.replace("torch.cuda", target.module), message, modules=("import torch",))
        elif _is_last(script, node) and name.startswith("torch.cuda.") and not name.startswith(_OTHER_RULES):
            yield from _unknown(script, target, node, name)


def _word_after(script: Script, node: ast.expr) -> str:
    parent = script.parents[node]
    return parent.attr if isinstance(parent, ast.Attribute) else ""


def _is_last(script: Script, node: ast.expr) -> bool:
    return not isinstance(script.parents[node], ast.Attribute)


def _unknown(script: Script, target: Target, node: ast.expr, name: str) -> Iterator[Finding]:
    if name.split(".")[2] not in _SHARED and not name.endswith("Tensor"):
        remedy = "run it only if torch.cuda.is_available()"
        yield Finding(RULE.id, "warning", node.lineno, f"{name} is for NVIDIA GPUs, {target.module} has none", remedy)


def _in_text(script: Script, target: Target, node: ast.expr) -> Iterator[Finding]:
    """In an f-string, where Python 3.11 does not know places for sure, a name stays; it may fail there, or say zero."""
    if _is_last(script, node) and script.qualified(node).startswith("torch.cuda."):
        message = f"{ast.unparse(node)} in an f-string stays"
        yield Finding(RULE.id, "warning", node.lineno, message, f"write {target.module} there")


RULE = Rule(
    id="DDP122",
    title="Ask the module of the target's devices",
    why="""For devices such as Intel's XPU torch has a module with the functions of `torch.cuda`: it counts them, makes
one the current one, waits for it and knows its memory. What only CUDA has is told (P4).""",
    before="""\
import torch

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(torch.cuda.max_memory_allocated())
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)

init_process_group("xccl")

device = torch.device("xpu" if torch.xpu.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(torch.xpu.max_memory_allocated())
destroy_process_group()
""",
    target="xpu",
    check=check,
)
