"""DDP623: an engine that may wrap the optimizer (ignite.distributed.auto_optim) is given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .words import is_here, program_of

_READS = ("clip_grad", "unscale_")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap the optimizers of the trained model; say where a gradient is read that Horovod has not averaged yet."""
    words, found = target.words, program_of(script).followed.found
    if not words.optimizer:
        return
    for call, other in sorted(found.optimizer_calls.items(), key=lambda each: each[0].lineno):
        if is_here(script, other):
            yield Replace(call, words.optimizer, "let the engine step", modules=words.imports)
            message = (
                "with `--backend horovod` Ignite broadcasts the optimizer's state, for which Horovod takes a step with "
                "gradients of zero: weight decay is applied once more, and Adam counts one step more"
            )
            yield Finding(RULE.id, "warning", call.lineno, message, "start it with nccl or gloo where that matters")
    if not any(is_here(script, each) for each in found.scripts.values()):
        return
    read = [node for node in script.find(ast.Attribute) if node.attr == "grad" or node.attr.startswith(_READS)]
    for node in read[:1]:
        message = "with `--backend horovod` gradients are averaged in optimizer.step(): here they are those of one rank"
        yield Finding(RULE.id, "warning", node.lineno, message, "start it with nccl or gloo")


RULE = Rule(
    id="DDP623",
    title="Give Ignite the optimizer",
    why="""\
auto_optim gives back torch's optimizer as it is. For Horovod it makes a DistributedOptimizer, which averages the
gradients, where auto_model has wrapped nothing; what clips or reads them before the step is told (L8).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
    after="""\
import argparse
import os
import sys

import ignite.distributed as idist
import torch
from torch.utils.data import DataLoader, TensorDataset

launcher = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
launcher.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")
launched, sys.argv[1:] = launcher.parse_known_args()
idist.initialize(launched.backend)
if idist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

loader = idist.auto_dataloader(
    TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
    batch_size=8,
    shuffle=False,
)
model = torch.nn.Linear(4, 1)
ddp_model = idist.auto_model(model)
optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

idist.finalize()
""",
    check=check,
    target="ignite",
)
