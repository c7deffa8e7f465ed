"""DDP608: rank 0 downloads first; the others find what it has fetched."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ...facts.flow.deferred import Places, run_at
from ...facts.flow.program import Program
from ...facts.reach import all_names
from ...facts.script import KEPT, Script
from ...rule import Edit, Finding, Guard, Insert, Replace, Rule
from ...targets import Target
from ..exact import downloads
from .words import REMEDY, is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Put barriers around what downloads, so that rank 0 comes first."""
    words, message = target.words, "download on rank 0 first"
    found: dict[ast.stmt, bool] = {}  # and whether ranks can wait before and after it
    for there, node, places in _downloads(program_of(script), target):
        if is_here(script, there) and places is None:
            what = "this makes a function that downloads, and where that is called is not seen"
            remedy = f"give it a name, and what it makes another, `data = make()`, or {REMEDY}"
            yield Finding(RULE.id, "refused", node.lineno, what, remedy)
        for statement in (each for other, each in places or () if is_here(script, other)):
            found[statement] = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or _gives(statement)
    for statement in (each for each, can_wait in found.items() if not can_wait):
        what = "this downloads in a statement before and after which the ranks cannot wait"
        yield Finding(RULE.id, "refused", statement.lineno, what, f"give what it makes a name, or {REMEDY}")
    downloading = [each for each, can_wait in found.items() if can_wait]
    if words.first:
        yield from (Guard(each, words.first, message, modules=words.imports, is_context=True) for each in downloading)
        return
    for given in (each for each in downloading if isinstance(each, ast.Return)):
        name = "data"
        while name in all_names(script):
            name += "_"
        value = ast.get_source_segment(script.text, given.value) or ""  # type: ignore[arg-type]
        code = f"{name} = {value}".replace("\n" + " " * given.col_offset, "\n")
        before, after = f"if {words.rank} != 0:\n    {words.barrier}", f"if {words.is_rank_0}:\n    {words.barrier}"
        yield Insert(given, f"{before}\n{code}\n{after}", message, modules=words.imports, above=True)
        yield Replace(given.value, name, "")  # type: ignore[arg-type]
    for first, last in _in_a_row(script, [each for each in downloading if not isinstance(each, ast.Return)]):
        before = f"if {words.rank} != 0:\n    {words.barrier}"
        yield Insert(first, before, message, modules=words.imports, above=True)
        after = f"if {words.is_rank_0}:\n    {words.barrier}"
        yield Insert(last, after, message, "after", modules=words.imports)


@lru_cache(maxsize=KEPT)
def _downloads(program: Program, target: Target) -> tuple[tuple[Script, ast.expr, Places | None], ...]:
    """What downloads in a program, and the statements that do it; None where these are not seen."""
    found = ((each, item) for each in program.scripts for item in downloads.check(each, target))
    nodes = ((each, item.node) for each, item in found if isinstance(item, Replace))
    return tuple((each, node, run_at(program, each, node)) for each, node in nodes)


def _gives(statement: ast.stmt) -> bool:
    """Whether a function gives back what a statement downloads, in a line of its own."""
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call)


def _in_a_row(script: Script, statements: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """The first and the last of those that stand one after another."""
    for first in statements:
        block = script.block(first)
        at = block.index(first)
        if at > 0 and block[at - 1] in statements:
            continue
        last = first
        for each in block[at:]:
            if each not in statements:
                break
            last = each
        yield first, last


RULE = Rule(
    id="DDP608",
    title="Download on rank 0 first",
    why="""\
Ranks that download the same file at the same time write over each other (I4). The others wait at a barrier until rank 0
has the file, and then find it. What a lambda or a `functools.partial` downloads is guarded where that is called; where
this is not seen, it is refused.""",
    before="""\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

train_set = datasets.MNIST("data", download=True, transform=transforms.ToTensor())
test_set = datasets.MNIST("data", train=False, download=True, transform=transforms.ToTensor())
loader = DataLoader(train_set, batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

if dist.get_rank() != 0:
    dist.barrier()
train_set = datasets.MNIST("data", download=True, transform=transforms.ToTensor())
test_set = datasets.MNIST("data", train=False, download=True, transform=transforms.ToTensor())
if dist.get_rank() == 0:
    dist.barrier()
loader = DataLoader(
    train_set,
    batch_size=64 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
