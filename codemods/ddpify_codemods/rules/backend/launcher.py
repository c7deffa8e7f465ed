"""DDP226: the processes of a hand-written script are those of today's launchers, as many as the target has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import decided, options
from ...facts.devices import inside_f_string
from ...facts.gpu_answers import only_reported
from ...facts.launch import is_before_launch, spawns
from ...facts.launcher_environment import read_variable, variable_of
from ...facts.leftovers import idle_assignments
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

_COUNT = "torch.cuda.device_count"
_PROCESSES = 'int(os.environ.get("NPROC", 2))'


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Read the local rank from the environment, and count processes where there are no GPUs to count."""
    if not spawns(script) and not _reads_local_rank(script):
        yield from _option(script)
    if not target.is_accelerator:
        yield from _counts(script, target)


def _reads_local_rank(script: Script) -> bool:
    if "LOCAL_RANK" not in script.text:
        return False
    names = (
        variable_of(script, node) if isinstance(node, ast.Subscript) else read_variable(script, node)
        for node in script.nodes
    )
    return "LOCAL_RANK" in names


def _option(script: Script) -> Iterator[Edit | Finding]:
    """`--local_rank`, which torch.distributed.launch gave to each process and torchrun does not."""
    for call in options(script, "local_rank"):
        words = {word.arg: word.value for word in call.keywords}
        default = words.get("default")
        otherwise = "0" if default is None or (isinstance(default, ast.Constant) and default.value is None) else "{}"
        code = f'int(os.environ.get("LOCAL_RANK", {otherwise}))'
        parts = (default,) if default is not None and otherwise == "{}" else ()
        message = "torchrun says the local rank in the environment"
        instead = "default" if default is not None else ""
        yield ChangeArgument(call, "default", code, message, instead, parts=parts, modules=("import os",))
        if "required" in words:
            yield ChangeArgument(call, "", "", "it need not be given any more", "required")


def _counts(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """The number of GPUs as the number of processes to start."""
    skipped = set(decided(script, target))
    for statement in idle_assignments(script):
        skipped.update(ast.walk(statement))
    for call in script.find(ast.Call):
        if script.qualified(call.func) != _COUNT or call in skipped or inside_f_string(script, call):
            continue
        if (spawns(script) and is_before_launch(script, call)) or _is_for_torchrun(script, call):
            message = "start as many processes as NPROC says: there are no GPUs to count"
            yield Replace(call, _PROCESSES, message, modules=("import os",))
        elif not isinstance(script.parents[call], ast.Compare) and not only_reported(script, call):
            message = f"torch.cuda.device_count() is 0 on the {target.name} target"
            yield Finding(RULE.id, "refused", call.lineno, message, "take the number of processes on this machine")


def _is_for_torchrun(script: Script, call: ast.Call) -> bool:
    """Whether a number stands in a command line of torchrun's."""
    lists = (parent for parent in script.ancestors(call) if isinstance(parent, ast.List))
    return any(ast.unparse(part) == "'--nproc-per-node'" for each in lists for part in each.elts)


RULE = Rule(
    id="DDP226",
    title="Start the processes as launchers do today",
    why="""\
torchrun, unlike the older `torch.distributed.launch`, gives no `--local_rank`: it says so in the environment, and a
script that does not look there puts all its processes on the first GPU. A script that starts one process for each GPU
of the machine starts as many as `NPROC` says, by default two, where there are none.""",
    before="""\
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()

torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl", init_method="env://")
model = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[args.local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).cuda()).mean().backward()
optimizer.step()
""",
    after="""\
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))
args = parser.parse_args()

torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl", init_method="env://")
model = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[args.local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).cuda()).mean().backward()
optimizer.step()
""",
    check=check,
    target="cuda",
)
