"""DDP104: nn.DataParallel, which spreads one process over GPUs, gives way to one process per device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.data_parallel import CLASSES, COPIES, called_in_parallel, module_of, with_inputs
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, ReplaceImport, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace what nn.DataParallel makes by a stand-in with the same face."""
    for statement in script.find(ast.ImportFrom):
        for alias in statement.names:
            if f"{statement.module}.{alias.name}" in CLASSES and not statement.level:
                yield ReplaceImport(statement, alias.name, "take the DataParallel that leaves the GPUs to DDP")
    for cls in script.find(ast.ClassDef):
        for base in cls.bases:
            if isinstance(base, ast.Attribute) and script.qualified(base) in CLASSES:
                yield Replace(base, "DataParallel", "keep its face, leave the GPUs to DDP", ("DataParallel",))
    for call in script.find(ast.Call):
        if script.qualified(call.func) in CLASSES:
            yield from _stand_in(call)
        elif called := called_in_parallel(script, call):
            template, parts = with_inputs(script, *called)
            yield Replace(call, template, "call the module itself: DDP divides the batch", parts=parts)
        elif target.is_accelerator and script.qualified(call.func) in COPIES:
            message = "every process copies the model to these GPUs here, and computes the whole batch with its copies"
            yield Finding(RULE.id, "warning", call.lineno, message, "call the model itself: a process has one GPU")


def _stand_in(call: ast.Call) -> Iterator[Replace]:
    module = module_of(call)
    if module is None:
        return
    imported_by_name = isinstance(call.func, ast.Name)
    lists = len(call.args) + len(call.keywords) > 1
    name = call.func.id if isinstance(call.func, ast.Name) else "DataParallel"
    message = "keep .module and its keys, leave the GPUs to DDP"
    imports = () if imported_by_name else ("DataParallel",)
    if lists:
        yield Replace(call, f"{name}({{}})", f"{message}; the list of devices goes", imports, parts=(module,))
    elif not imported_by_name:
        yield Replace(call.func, name, message, imports)


RULE = Rule(
    id="DDP104",
    title="Replace nn.DataParallel",
    why="""nn.DataParallel copies the model to several GPUs of one process in every step. With one process per
device DDP does that work (P4). What the script's other lines and its checkpoints know of nn.DataParallel stays:
`.module`, and the "module." before the keys of its state_dict (I7, M13).""",
    before="""\
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(4, 1), device_ids=[0, 1]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4).cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.module.weight)
""",
    after="""\
import torch
from ddpify_runtime import (
    DataParallel,
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)
from torch import nn

init_process_group("nccl")

model = DataParallel(nn.Linear(4, 1)).cuda()
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4).cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.module.weight)
destroy_process_group()
""",
    check=check,
)
