"""DDP227: what mpirun sets is handed to torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import joins, options
from ...facts.header import last_leading_import
from ...facts.launcher_environment import read_variable, variable_of
from ...facts.script import Script
from ...facts.started import starts_of_group
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert the lines of the target's launcher after the imports of the file that joins the process group."""
    call = next(joins(script), None)
    if call is None or not target.plain_environment:
        return
    for start in starts_of_group(script):
        message = "the launcher of this target starts the processes, and each would start those of the script"
        remedy = "write torch.multiprocessing.spawn(function, args=(…), nprocs=n), or read RANK and WORLD_SIZE"
        yield Finding(RULE.id, "refused", start.call.lineno, message, remedy)
    anchor = last_leading_import(script.tree)
    if anchor is None or any(_writes_rank(script, node) for node in script.nodes):
        return
    reads = any(read_variable(script, node) == "LOCAL_RANK" for node in script.nodes)
    reads = reads or any(options(script, "local_rank"))
    lines = "".join(f"\n{line}" for line in target.plain_environment if reads or '"LOCAL_RANK"' not in line)
    message = "hand torch what this target's launcher sets"
    yield Insert(anchor, lines, message, "after", modules=("import os",), last=True)


def _writes_rank(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return variable_of(script, node) == "RANK"
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "os.environ.setdefault" or not node.args:
        return False
    return isinstance(node.args[0], ast.Constant) and node.args[0].value == "RANK"


RULE = Rule(
    id="DDP227",
    title="Hand torch what mpirun sets",
    why="""\
torch reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which torchrun sets and mpirun does not. Targets that
mpirun starts (mpi, and xpu with ccl) get the lines that Intel documents for oneCCL; where they are set already, they
count. A script
that starts its processes itself is made to be started first (DDP228), and refused where it does not by
torch.multiprocessing.spawn.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4)).mean().backward()
optimizer.step()
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ.setdefault("RANK", os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
os.environ.setdefault("WORLD_SIZE", os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29500")

dist.init_process_group("mpi" if dist.is_mpi_available() and not dist.is_torchelastic_launched() else "gloo")
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4)).mean().backward()
optimizer.step()
""",
    check=check,
    target="mpi",
)
