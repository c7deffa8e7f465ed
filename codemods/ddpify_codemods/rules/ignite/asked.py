"""DDP632: ranks, the number of processes and barriers in the words of Ignite."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_COLLECTIVES = ("all_reduce", "all_gather", "broadcast", "reduce", "gather", "scatter", "send", "recv", "new_group")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Ask Ignite where torch.distributed is asked about all processes; say which calls stay torch's."""
    words = target.words
    said = {"get_rank": words.rank, "get_world_size": words.world_size, "barrier": words.barrier}
    stays: list[ast.Call] = []
    for call in script.find(ast.Call):
        module, _, name = script.qualified(call.func).rpartition(".")
        if module not in ("torch.distributed", "torch.distributed.distributed_c10d"):
            continue
        if name in said and not call.args and not call.keywords and not inside_f_string(script, call):
            yield Replace(call, said[name], f"ask {words.name}", modules=words.imports)
        elif name.startswith(_COLLECTIVES):
            stays.append(call)
    for call in stays[:1]:
        message = f"{ast.unparse(call.func)} stays torch's own: it needs the backend nccl, gloo or mpi"
        yield Finding(RULE.id, "note", call.lineno, message, "none needed with these")


RULE = Rule(
    id="DDP632",
    title="Ask Ignite for the rank",
    why="""\
Rank, number of processes and barriers are asked of Ignite, which knows them for each of its backends. Collectives stay
torch's own: they work with the backends that are torch's, and are told.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
dist.all_reduce(loss.detach())
if dist.get_rank() == 0:
    print(loss.item() / dist.get_world_size())
dist.barrier()
dist.destroy_process_group()
""",
    after="""\
import ignite.distributed as idist
import torch
import torch.distributed as dist

idist.initialize("gloo")
model = idist.auto_model(torch.nn.Linear(4, 1))
optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
dist.all_reduce(loss.detach())
if idist.get_rank() == 0:
    print(loss.item() / idist.get_world_size())
idist.barrier()
idist.finalize()
""",
    check=check,
    target="ignite",
)
