"""DDP628: what a meter makes of its sums is brought together where it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.called_modules import last_name
from ...facts.meters import Meter, meters
from ...facts.plain_code import METER
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .logged import is_logged
from .numbers import FUNCTIONS
from .rank_0_alone import is_bound_within, is_of_rank_0
from .words import is_here, program_of

_MESSAGE = "bring the numbers of the meter together from all ranks"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give meters a method for it, and call it where their numbers are read."""
    taken: set[tuple[ast.AST | None, str]] = {(None, name.id) for name in script.find(ast.Name)}
    program = program_of(script)
    for meter in meters(program.scripts, program.followed.found):
        if is_here(script, meter.script):
            yield _method(meter)
        here = [site.node for site in meter.reads if is_here(script, site.script)]
        reads: dict[tuple[ast.stmt, str], list[ast.expr]] = {}
        for node in sorted(here, key=lambda each: (each.lineno, each.col_offset)):
            reads.setdefault((script.statement(node), ast.unparse(_owner(node))), []).append(node)
        for nodes in reads.values():
            yield from _read(script, nodes, taken)


def _method(meter: Meter) -> Insert:
    first = next(iter(meter.made.values()))
    method = meter.script.parents[first]
    assert isinstance(method, ast.FunctionDef)
    this = method.args.args[0].arg
    made = [(f"meter.{name} = {_of_all_ranks(meter, each, this)}", _divides(each)) for name, each in meter.made.items()]
    lines = [line for line, divides in made if not divides]
    if divided := [f"    {line}" for line, divides in made if divides]:
        lines += ["with contextlib.suppress(ZeroDivisionError):  # nothing was added yet", *divided]
    body = "\n    ".join([f"meter = copy.copy({this})", *lines, "return meter"])
    code = f'\ndef {METER}({this}):\n    """A copy with the numbers of all processes."""\n    {body}'
    modules = ("import contextlib", "import copy") if divided else ("import copy",)
    return Insert(meter.node.body[-1], code, _MESSAGE, "after", modules=modules)


def _divides(statement: ast.Assign) -> bool:
    return any(isinstance(each, ast.Div | ast.FloorDiv | ast.Mod) for each in ast.walk(statement.value))


def _of_all_ranks(meter: Meter, statement: ast.Assign, this: str) -> str:
    """What an attribute is made of, with the numbers of all ranks."""
    value = statement.value
    if isinstance(value, ast.Name):
        return f"{FUNCTIONS[meter.reductions[value]]}({ast.unparse(statement.targets[0])})"
    line = meter.script.text.splitlines()[value.lineno - 1].encode()
    inside = [node for node in ast.walk(value) if node in meter.reductions]
    for node in sorted(inside, key=lambda each: each.col_offset, reverse=True):
        start, end = node.col_offset, node.end_col_offset
        line = b"%s%s(%s)%s" % (line[:start], FUNCTIONS[meter.reductions[node]].encode(), line[start:end], line[end:])
    return line[value.col_offset :].decode().strip()


def _read(
    script: Script, nodes: Sequence[ast.expr], taken: set[tuple[ast.AST | None, str]]
) -> Iterator[Edit | Finding]:
    """Read a meter in a statement: once, and before a statement to which only rank 0 comes."""
    statement, owner = script.statement(nodes[0]), _owner(nodes[0])
    simple = isinstance(statement, ast.Expr | ast.Assign | ast.Return)
    is_alone = is_logged(script, statement) or any(is_of_rank_0(script, node) for node in nodes)
    if not is_alone and (len(nodes) == 1 or not simple):
        for node in nodes:
            if isinstance(node, ast.Attribute):
                yield Replace(node, f"{{}}.{METER}().{node.attr}", _MESSAGE, parts=(node.value,))
            else:
                yield Replace(node, f"{{}}.{METER}()", _MESSAGE)
        return
    if is_alone and any(is_bound_within(script, node) for node in nodes):
        message = f"`{ast.unparse(nodes[0])}` is brought together from all ranks, and only rank 0 comes here"
        yield Finding(RULE.id, "refused", nodes[0].lineno, message, "read it in a line before")
        return
    name = f"whole_{last_name(owner) or 'meter'}"
    scope = script.scope(statement)
    while taken & {(None, name), (scope, name)} or name in FUNCTIONS.values():
        name += "_"
    taken.add((scope, name))
    yield Insert(statement, f"{name} = {ast.unparse(owner)}.{METER}()", _MESSAGE)
    for node in nodes:
        yield Replace(node, f"{name}.{node.attr}" if isinstance(node, ast.Attribute) else name, "")


def _owner(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Attribute) else node


RULE = Rule(
    id="DDP628",
    title="Bring meters together where they are read",
    why="""\
A meter makes a mean of its sums with each update, and is read now and then. The collectives belong to where it is read:
in every step, they would cost more than the gradients of a small model.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.avg = 0.0
        self.sum = 0.0
        self.count = 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = Meter()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.update(loss.item(), len(x))
print(losses.avg)
""",
    after='''\
import contextlib
import copy
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def sum_over_ranks(value):
    """The sum of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)


class Meter:
    def __init__(self):
        self.avg = 0.0
        self.sum = 0.0
        self.count = 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count

    def over_ranks(self):
        """A copy with the numbers of all processes."""
        meter = copy.copy(self)
        with contextlib.suppress(ZeroDivisionError):  # nothing was added yet
            meter.avg = sum_over_ranks(self.sum) / sum_over_ranks(self.count)
        return meter


loader = DataLoader(
    dataset := TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = Meter()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.update(loss.item(), len(x))
print(losses.over_ranks().avg)
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
