"""DDP622: an engine that knows this process's device (ignite.distributed.device) is asked for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import Branches, branches_of, inside_f_string, is_index
from ...facts.places import device_place, is_device_call
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_MESSAGE = "take the device that the model is put on"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Ask the engine where a script chooses between a GPU and the CPU, or takes a numbered GPU."""
    words = target.words
    if not words.device:
        return
    branches, done = branches_of(script, target), set[ast.AST]()
    for node in script.nodes:
        if node in done or not isinstance(node, ast.expr) or inside_f_string(script, node):
            continue
        if _is_made(branches, node) or _is_named(branches, node):
            done.update(ast.walk(node))
            yield Replace(node, words.device, _MESSAGE, modules=words.imports)
        elif isinstance(node, ast.Call) and _moves(script, node):
            yield _moved(node, words)


def _is_made(branches: Branches, node: ast.expr) -> bool:
    """Whether a call makes a `torch.device` of a GPU's name, number, or choice."""
    if not isinstance(node, ast.Call) or not is_device_call(branches.script, node) or not node.args:
        return False
    return branches.names_gpu(node.args[0]) or is_index(node.args[0])


def _moves(script: Script, call: ast.Call) -> bool:
    """Whether a call is the method `.cuda(…)` of a tensor or a module."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
    return is_method and "cuda" not in script.defined and not script.qualified(call.func).startswith("torch.")


def _moved(call: ast.Call, words: Words) -> Replace:
    assert isinstance(call.func, ast.Attribute)
    waits = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "non_blocking")]
    template = f"{{}}.to({words.device}{', non_blocking={}' if waits else ''})"
    return Replace(call, template, _MESSAGE, modules=words.imports, parts=(call.func.value, *waits))


def _is_named(branches: Branches, node: ast.expr) -> bool:
    """Whether a string names a GPU, or is a choice of which that is one outcome, where any device would do."""
    return branches.names_gpu(node) and device_place(branches, node) == "device"


RULE = Rule(
    id="DDP622",
    title="Take the device of Ignite",
    why="""\
auto_model puts the model on idist.device(): the GPU of this process, or the CPU where there is none (P4). What is
chosen by a flag, by a number, or by `.cuda()` has to be the same one, or the model and its data are apart.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
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

device = idist.device()
loader = idist.auto_dataloader(
    TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
    batch_size=8,
    shuffle=True,
)
model = torch.nn.Linear(4, 1).to(device)
ddp_model = idist.auto_model(model)
optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

idist.finalize()
""",
    check=check,
    target="ignite",
)
