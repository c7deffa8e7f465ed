"""DDP129: trained modules are called, where the script calls their forward: only calls are divided."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import called_model, last_name
from ...facts.optimizers import optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Call the module in the place of its forward; not where hooks would run then that do not run now."""
    if target.shards_models or "register_forward" in script.text:
        return
    trained = {base.code for optimizer in optimizers(script) for base in optimizer.bases}
    for call in script.find(ast.Call):
        model = called_model(call)
        is_trained = any(ast.unparse(each) in trained for each in origins(script, model))
        if model is not call.func and is_trained and not _is_plain(script, model):
            yield Replace(call.func, "{}", "call the module, which is divided", parts=(model,))


def _is_plain(script: Script, model: ast.expr) -> bool:
    """Whether something is an object of a class of the file that is derived from nothing: no module, which can be
    called; the modules that it holds are divided."""
    made = [last_name(each.func) for each in origins(script, model) if isinstance(each, ast.Call)]
    around = [each for each in script.ancestors(model) if isinstance(each, ast.ClassDef)] if _is_self(model) else []
    classes = around[:1] or [each for each in script.find(ast.ClassDef) if each.name in made]
    return bool(classes) and all([ast.unparse(base) for base in each.bases] in ([], ["object"]) for each in classes)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


RULE = Rule(
    id="DDP129",
    title="Call modules, not their forward",
    why="""\
A module is divided over the processes where it is called. `model.forward(x)` goes past that, so that every process
would compute the whole batch: right, and no faster. The call runs the hooks of the module, too, of which there are
none.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model.forward(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    destroy_process_group,
    init_process_group,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")

loader = DataLoader(
    dataset := TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
    batch_size=8,
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
)
