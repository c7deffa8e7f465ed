"""DDP224: what a hand-written script says in the words of one accelerator, it says in those of another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import names_device
from ...facts.devices import Branches, branches_of, inside_f_string, quoted_like, source
from ...facts.distributed import is_rank
from ...facts.places import asks_which_device, device_place
from ...facts.script import Script
from ...rule import Delete, DropImport, Edit, Finding, Replace, Rule
from ...targets import TARGETS, Target
from ..convert import tensor_types
from ..devices import amp

# Intel's extension, which torch 2.9 and newer does without.
_EXTENSIONS = frozenset({"intel_extension_for_pytorch", "oneccl_bindings_for_pytorch", "torch_ccl"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rename devices, keeping their numbers, and the module of torch that has them."""
    if not target.module:
        return
    others = {each.module: each for each in reversed(TARGETS.values()) if each.module}
    for module, other in others.items():
        if module != target.module and _may_name(script, other):
            yield from _renamed(script, other, target)
    yield from amp.check(script, target)
    yield from tensor_types.check(script, target)
    yield from _imports(script, target)


def _may_name(script: Script, other: Target) -> bool:
    """Whether a file may say anything in the words of a target; its module may come by way of another file."""
    return other.device_type in script.text or any(name.startswith("torch.") for _, name in script.inherited)


def _renamed(script: Script, other: Target, target: Target) -> Iterator[Edit | Finding]:
    branches, message = branches_of(script, other), f"use the {target.name} device"
    kinds = (other.device_type, target.device_type)
    for node in script.find(ast.Attribute, ast.Name, ast.Call, ast.JoinedStr, ast.Constant):
        if inside_f_string(script, node):
            yield from _in_text(script, node, other, target)
        elif isinstance(node, ast.Attribute | ast.Name) and script.qualified(node) == other.module:
            if isinstance(node.ctx, ast.Load) and not _is_others(script.parents[node]):
                yield Replace(node, target.module, message, modules=("import torch",))
        elif isinstance(node, ast.Attribute) and node.attr == f"is_{kinds[0]}":
            yield Replace(node, f"{{}}.is_{kinds[1]}", message, parts=(node.value,))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == kinds[0]:
            if not script.qualified(node.func).startswith("torch.") and kinds[0] not in script.defined:
                yield Replace(node.func, f"{{}}.{kinds[1]}", message, parts=(node.func.value,))
        elif isinstance(node, ast.JoinedStr) and names_device(script, node, other):
            yield Replace(node, source(script, node).replace(f"{kinds[0]}:", f"{kinds[1]}:", 1), message)
        elif isinstance(node, ast.Constant) and _is_device(branches, node, kinds[0]):
            text = str(node.value).replace(kinds[0], kinds[1], 1).replace("{}", "{0}")  # {} is a template's own
            yield Replace(node, quoted_like(script, node, text), message)


def _is_others(parent: ast.AST) -> bool:
    """Whether what is taken of a module is for other rules, or NVIDIA's alone."""
    return isinstance(parent, ast.Attribute) and parent.attr.endswith(("Tensor", "amp", "comm", "nccl"))


def _is_device(branches: Branches, node: ast.Constant, kind: str) -> bool:
    """Whether a string is a device, or the begin of one: "cuda", "cuda:0", "cuda:" + str(rank), "cuda:%d" % rank."""
    if not isinstance(node.value, str) or node.value.partition(":")[0] != kind:
        return False
    return ":" in node.value or bool(device_place(branches, node)) or asks_which_device(branches.script, node)


def _in_text(script: Script, node: ast.expr, other: Target, target: Target) -> Iterator[Finding]:
    """In an f-string, where Python 3.11 does not know places for sure, a name stays."""
    named = isinstance(node, ast.Attribute | ast.Name) and script.qualified(node).startswith(f"{other.module}.")
    if named and not isinstance(script.parents[node], ast.Attribute) and not is_rank(script, node):
        message = f"{ast.unparse(node)} in an f-string stays"
        yield Finding(RULE.id, "warning", node.lineno, message, f"write {target.module} there")


def _imports(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Leave out the imports of an extension that the target does not need."""
    kept = {line.removeprefix("import ") for line in target.modules}
    for statement in script.find(ast.Import):
        gone = [alias for alias in statement.names if alias.name in _EXTENSIONS - kept]
        for alias in gone:
            name = alias.asname or alias.name
            uses = [node for node in script.find(ast.Name) if node.id == name]
            if uses:
                message, remedy = f"{alias.name} is for Intel's devices", "take it out first"
                yield Finding(RULE.id, "refused", uses[0].lineno, message, remedy)
        if len(gone) == len(statement.names):
            yield Delete(statement, "torch itself has what this target needs")
        else:
            yield from (DropImport(statement, alias.name, "torch itself has what this target needs") for alias in gone)


RULE = Rule(
    id="DDP224",
    title="Use the words of another accelerator",
    why="""\
torch has the same functions for Intel's GPUs as for NVIDIA's, in torch.xpu, and tensors have `.xpu()`. So each word has
another, and numbers stay: `f"cuda:{rank}"` becomes `f"xpu:{rank}"`. What one of them lacks fails, with the name of what
is missing.""",
    before="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
device = torch.device(f"cuda:{rank}")
torch.cuda.set_device(device)
model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.autocast("cuda"):
    loss = model(torch.rand(8, 4, device=device)).mean()
loss.backward()
optimizer.step()
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("xccl")
rank = int(os.environ["LOCAL_RANK"])
device = torch.device(f"xpu:{rank}")
torch.xpu.set_device(device)
model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.autocast("xpu"):
    loss = model(torch.rand(8, 4, device=device)).mean()
loss.backward()
optimizer.step()
""",
    check=check,
    target="xpu",
)
