"""DDP612: a logger of a library (SummaryWriter, wandb) lives on rank 0, and is given numbers of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.header import functions_place, joined_after
from ...facts.loggers import is_recorded, loggers, only_records
from ...facts.script import Script
from ...rule import Edit, Finding, Guard, Insert, Replace, Rule
from ...targets import Target
from .disabled_runs import disabled_runs, is_alike
from .logged import answers, guarded, is_alone, is_kept_for, method_of, uses_of
from .numbers import reduces
from .words import REMEDY, is_here, program_of

_STAND_IN = "NoLogger"
_CLASS = f'''\


class {_STAND_IN}:
    """What the other processes have in place of a logger: its methods, and those of what it keeps, do nothing."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        pass'''
_ON_RANK_ZERO = "{} exists on rank 0 only, and is used here in a way that all ranks have to follow"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make loggers on rank 0, and call them there; where that is not all, the other ranks have a stand-in."""
    words, alone, stands_in = target.words, guarded(script), False
    answered = set(answers(script))
    for node, other in program_of(script).followed.found.answers.items():
        asked = is_here(script, other) and node not in answered and not is_kept_for(script, node)
        if asked and not (is_alike(node) and _asks_runs(script, node)):
            yield Finding(RULE.id, "refused", node.lineno, _ON_RANK_ZERO.format(f"`{ast.unparse(node)}`"), REMEDY)
    for name, calls in loggers(script).items():
        records = all(only_records(script, call) for call in calls)
        everywhere = [call for call in calls if call in disabled_runs(script)]
        for call in calls:
            if call in everywhere:
                continue
            nothing = "None" if name in alone else f"{_STAND_IN}()"
            code = f"{{}} if {words.is_rank_0} else {nothing}"
            code = f"({code})" if isinstance(script.parents[call], ast.IfExp | ast.BoolOp) else code
            yield Replace(call, code, f"make {name} on rank 0", modules=words.imports)
            stands_in = stands_in or name not in alone
        for node in uses_of(script, name):
            if is_recorded(script, node) or (everywhere and _ends(script, node)):
                continue
            if name in alone:
                statement = script.statement(node)
                message = f"call {ast.unparse(statement.value.func)} on rank 0"  # type: ignore[attr-defined]
                yield Guard(statement, words.is_rank_0, message, modules=words.imports)
            elif len(everywhere) < len(calls) and (not records or not _can_stand_in(script, node, answered)):
                yield Finding(RULE.id, "refused", node.lineno, _ON_RANK_ZERO.format(ast.unparse(node)), REMEDY)
    if stands_in:
        at, where = functions_place(script)
        end = "" if reduces(script) or joined_after(script)[1] == "before" else "\n"
        yield Insert(at, _CLASS + end, "what the other ranks have in place of a logger", where)


def _ends(script: Script, node: ast.expr) -> bool:
    """Whether a run ends here, which it does on every rank that has begun it."""
    call = method_of(script, node)
    return call is not None and call.func.attr == "finish"  # type: ignore[attr-defined]


def _asks_runs(script: Script, node: ast.expr) -> bool:
    """Whether what is asked is a run that every rank has begun."""
    return all(each.made in disabled_runs(script) for each in program_of(script).followed.found.logged[node])


def _can_stand_in(script: Script, node: ast.expr, answered: set[ast.expr]) -> bool:
    """Whether a use of a logger is one of something that does nothing, too."""
    parent = script.parents[node]
    if (call := method_of(script, node, kept=True)) is not None:
        return is_alone(script, call) or call in answered
    if isinstance(parent, ast.keyword):
        parent = script.parents[parent]
    if isinstance(parent, ast.Call):
        given = parent in program_of(script).followed.found.given_loggers
        around = script.scope(node)
        delegates = ast.unparse(parent.func) == "getattr" and getattr(around, "name", "") == "__getattr__"
        return given or (delegates and isinstance(script.parents[parent], ast.Return))
    if isinstance(parent, ast.Compare):
        others = [parent.left, *parent.comparators]
        return all(each is node or (isinstance(each, ast.Constant) and each.value is None) for each in others)
    if isinstance(parent, ast.Expr):  # `try: self.vis` asks whether it is there
        return True
    is_test = isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node
    is_not = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    return is_test or is_not or parent in answered or isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return)


RULE = Rule(
    id="DDP612",
    title="Log on rank 0",
    why="""\
A SummaryWriter or a run of wandb exists once (I5). Rank 0 makes it and calls it; what it is given is brought together
from all ranks before, since the others do not come there (I11). Where it goes to functions, or all ranks compute what
it is given, the others have an object in its place whose methods do nothing.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter("runs")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss.item(), step)
writer.close()
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch.utils.tensorboard import SummaryWriter


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

writer = SummaryWriter("runs") if dist.get_rank() == 0 else None
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_loss = mean_over_ranks(loss.item())
    if dist.get_rank() == 0:
        writer.add_scalar("loss", mean_loss, step)
if dist.get_rank() == 0:
    writer.close()
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
