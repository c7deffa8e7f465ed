"""DDP635: ranks draw noise of their own for their samples, from the first pass over the batches of training on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.called_modules import last_name
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import is_here, module_name, program_of

# Where it comes again, the sum of a seed and a rank would be that of another rank the time before.
_SEED_AGAIN = "torch.manual_seed(torch.randint(2**31, ()).item() + {})"
# Rank 0 goes on with the numbers of one process.
_SEEDS = {
    "torch": "torch.manual_seed(torch.initial_seed() + {})",
    "numpy": "{}.random.seed(torch.initial_seed() % 2**32)",
    "random": "{}.seed(torch.initial_seed())",
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give each rank generators at another place, where all have drawn what they have to draw alike."""
    followed = program_of(script).followed
    for other, at in followed.found.first_passes if followed.drawn else ():
        if is_here(script, other):
            again = _comes_again(program_of(script).scripts, script, at)
            yield _apart(script, at, followed.drawn, target.words, again)


def _comes_again(scripts: Sequence[Script], script: Script, at: ast.AST, depth: int = 4) -> bool:
    """Whether a statement is in a loop, or in a function that is called in one, or at several places."""
    if any(isinstance(each, ast.For | ast.While) for each in script.ancestors(at)) or not depth:
        return True
    function = getattr(script.scope(at), "name", None)
    if function is None:
        return False
    calls = [(each, call) for each in scripts for call in each.find(ast.Call) if last_name(call.func) == function]
    return len(calls) > 1 or any(_comes_again(scripts, each, call, depth - 1) for each, call in calls)


def _apart(script: Script, at: ast.stmt, drawn: frozenset[str], words: Words, again: bool) -> Insert:
    """Seed the generators of all ranks but the first where a pass begins."""
    rank = words.rank
    names = {library: module_name(script, library, at) for library in sorted(drawn)}
    filled = {library: rank if library == "torch" else names.get(library) for library in _SEEDS}
    seeds = _SEEDS | ({"torch": _SEED_AGAIN} if again else {})
    lines = (f"\n    {seeds[library].format(name)}" for library, name in filled.items() if name)
    code = f"if {rank} != 0:  # noise of its own for its samples{''.join(lines)}"
    modules = (
        *(f"import {library}" for library, name in names.items() if library == name),
        *words.imports,
        "import torch",
    )
    return Insert(at, code, "let each rank draw noise of its own", modules=modules)


RULE = Rule(
    id="DDP635",
    title="Noise of its own for each rank",
    why="""\
With one seed for all, ranks would draw the same dropout masks and noise for different samples (S2). What is drawn
before training has to be the same everywhere: a split of the data, weights, an order. So the ranks go apart where the
first pass over the batches of training begins, outside of the loops around it that make no optimizer. What is drawn
later for all of them is refused (DDP610).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

dataset = TensorDataset(torch.rand(72, 4), torch.rand(72, 1))
model = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_set, test_set = random_split(dataset, [64, 8])
loader = DataLoader(train_set, batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
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
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(72, 4), torch.rand(72, 1))
model = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(4, 1))
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_set, test_set = random_split(dataset, [64, 8])
loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
if dist.get_rank() != 0:  # noise of its own for its samples
    torch.manual_seed(torch.initial_seed() + dist.get_rank())
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
