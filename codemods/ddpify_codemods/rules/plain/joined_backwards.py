"""DDP659: the backward passes of losses that come one after the other are one, of their sum."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.training import TWICE
from ...facts.script import Script
from ...rule import Delete, Edit, Replace, Rule
from ...targets import Target
from .words import program_of

_MESSAGE = "one backward pass through the forward of which DistributedDataParallel counts one"
# What is computed again in each backward pass: statistics of BatchNorm change each time.
_RECOMPUTES = "torch.utils.checkpoint"


def check(script: Script, target: Target) -> Iterator[Edit]:
    """Nothing: losses are added up before a program is followed."""
    yield from ()


def joins(script: Script) -> Iterator[Edit]:
    """Add up losses whose backward passes follow each other, where several go through one forward.

    The program is converted as it is then: whether these losses can be added up is seen there.
    """
    found = program_of(script).followed.found
    refused = ((pair, problem) for pair, problem in found.not_averaged.items() if pair in found.stepped)
    twice = {call for (call, _), problem in refused if problem.reason == TWICE}
    if not twice & set(script.parents) or any(map(_goes_its_own_way_back, program_of(script).scripts)):
        return
    for first, *others in _in_a_row(script, set(found.backwards)):
        if not twice & {*others}:
            continue
        terms = " + ".join(("{}", *(ast.unparse(_loss(each)) for each in others)))
        in_brackets = isinstance(_loss(first), ast.BinOp)
        yield Replace(_loss(first), terms if in_brackets else f"({terms})", _MESSAGE)
        yield from (Delete(script.statement(each), "") for each in others)


def _goes_its_own_way_back(script: Script) -> bool:
    """Whether gradients of a sum may not be the sum of gradients, or something is computed in each backward pass."""
    methods = (each for cls in script.find(ast.ClassDef) for each in cls.body if isinstance(each, ast.FunctionDef))
    names = (script.qualified(each) for kind in (ast.Name, ast.Attribute) for each in script.find(kind))
    imported = (f"{each.module}.{alias.name}" for each in script.find(ast.ImportFrom) for alias in each.names)
    modules = (alias.name for each in script.find(ast.Import) for alias in each.names)
    own = any(each.name in ("backward", "vjp", "setup_context") for each in methods)
    again = any(each.startswith(_RECOMPUTES) for each in (*names, *imported, *modules))
    return own or again or "gradient_checkpointing" in script.text


def _in_a_row(script: Script, backwards: set[ast.Call]) -> Iterator[list[ast.Call]]:
    """Backward passes that are statements of one block, with nothing between them, and keep no more than they need."""
    done: set[ast.AST] = set()
    for call in sorted(backwards & set(script.parents), key=lambda each: (each.lineno, each.col_offset)):
        statement = script.parents[call]
        if statement in done or not isinstance(statement, ast.Expr):
            continue
        block = script.block(statement)
        row: list[ast.Call] = []
        for each in block[block.index(statement) :]:
            value = each.value if isinstance(each, ast.Expr) else None
            if not isinstance(value, ast.Call) or value not in backwards or not _is_simple(value):
                break
            row.append(value)
            done.add(each)
        kept = {ast.unparse(word.value) for word in row[-1].keywords} if row else set[str]()
        alike = not kept or all({ast.unparse(word.value) for word in each.keywords} == kept for each in row)
        again = len({ast.unparse(_loss(each)) for each in row}) < len(row)  # an error where no graph is kept
        if len(row) > 1 and alike and not (again and not all(each.keywords for each in row[:-1])):
            yield row


def _is_simple(call: ast.Call) -> bool:
    """Whether a backward pass is given nothing but whether to keep the graph, and its loss is a variable or a multiple
    of one: nothing is called for it."""
    loss = _loss(call)
    multiple = isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Mult | ast.Div)
    calls = any(isinstance(each, ast.Call | ast.NamedExpr | ast.Await) for each in ast.walk(loss))
    keeps = not call.args and all(word.arg == "retain_graph" for word in call.keywords)
    return keeps and not calls and (multiple or isinstance(loss, ast.Name | ast.Attribute | ast.Subscript))


def _loss(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


RULE = Rule(
    id="DDP659",
    title="Go back through a forward once",
    why="""\
DistributedDataParallel counts one backward pass for each forward (L10): what a second one leaves would be each rank's
own. Where two follow each other with nothing between, their gradients add up to those of the sum of the losses. The
graph is kept as it was: something else may go back through it.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    out = model(x)
    error = torch.nn.functional.mse_loss(out, y)
    size = out.abs().mean()
    optimizer.zero_grad()
    error.backward(retain_graph=True)
    size.backward()
    optimizer.step()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    out = ddp_model(x)
    error = torch.nn.functional.mse_loss(out, y)
    size = out.abs().mean()
    optimizer.zero_grad()
    (error + size).backward(retain_graph=True)
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
