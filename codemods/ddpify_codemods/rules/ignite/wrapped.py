"""DDP633: the wrapper and the optimizer of a hand-written script are made by Ignite."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.eager import is_wrapper_call
from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_POSITIONS = ("module", "device_ids", "output_device", "dim", "broadcast_buffers")
_DROPPED = ("device_ids", "output_device", "dim")  # Ignite says them


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace DistributedDataParallel, give Ignite the optimizers, and take models out of what may not wrap them."""
    words = target.words
    for call in script.find(ast.Call):
        if is_wrapper_call(script, call):
            yield from _wrapped(call, target)
    for call in (optimizer.call for optimizer in optimizers(script) if isinstance(optimizer.call, ast.Call)):
        yield Replace(call, words.optimizer, "let the engine step", modules=words.imports)
    attributes = [node for node in script.find(ast.Attribute) if node.attr == "module"]
    owned = any(isinstance(node.ctx, ast.Store) for node in attributes)
    for node in attributes:
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        if owned:
            message = "this may be a wrapper's `module`, or one that the model has itself"
            yield Finding(RULE.id, "refused", node.lineno, message, "give the model's own another name")
            continue
        template = "getattr({0}, 'module', {0})".format(ast.unparse(node.value))
        yield Replace(node, template, "in one process there is no wrapper")


def _wrapped(call: ast.Call, target: Target) -> Iterator[Edit | Finding]:
    given = dict(zip(_POSITIONS, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    module = given.pop("module", None)
    hidden = len(call.args) > len(_POSITIONS) or not all(word.arg for word in call.keywords)
    if module is None or hidden or "process_group" in given:
        remedy = "write its arguments out: DistributedDataParallel(model)"
        yield Finding(RULE.id, "refused", call.lineno, "Ignite has no form of this call", remedy)
        return
    kept = {name: value for name, value in given.items() if name not in _DROPPED}
    template = target.words.model.format(", ".join(["{}", *(f"{name}={{}}" for name in kept)]))
    parts = (module, *kept.values())
    yield Replace(call, template, "let Ignite wrap the model", modules=target.words.imports, parts=parts)


RULE = Rule(
    id="DDP633",
    title="Let Ignite wrap the model",
    why="""\
auto_model wraps the model in DistributedDataParallel for the device of this process, in several processes; in one there
is no wrapper, nor its `module`. auto_optim gives torch's optimizer back. The loaders stay: auto_dataloader would divide
a batch size once more that is that of each process.""",
    before="""\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group(backend="nccl")
model = torch.nn.Linear(4, 1).cuda()
model = DistributedDataParallel(model, device_ids=[local_rank], find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4).cuda()).mean().backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
""",
    after="""\
import os
import torch
import ignite.distributed as idist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
idist.initialize("nccl")
model = torch.nn.Linear(4, 1).cuda()
model = idist.auto_model(model, find_unused_parameters=True)
optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4).cuda()).mean().backward()
    optimizer.step()
if idist.get_rank() == 0:
    torch.save(getattr(model, 'module', model).state_dict(), "model.pt")
idist.finalize()
""",
    check=check,
    target="ignite",
)
