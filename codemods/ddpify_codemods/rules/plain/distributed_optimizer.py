"""DDP624: an engine that averages gradients in the optimizer (hvd.DistributedOptimizer) wraps that, not the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ...facts.flow.program import Program
from ...facts.flow.values import root_of
from ...facts.flow.wrapped_names import Wrapping
from ...facts.flow.wrapping import wrapping
from ...facts.following_step import following_steps
from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ...waits import stepped_once, zeroed
from .words import REMEDY, is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap the optimizer, send rank 0's parameters, and wait for the averages where gradients are looked at."""
    words = target.words
    if not words.averaging:
        return
    program = program_of(script)
    made, found = program.followed.found.optimizer_calls, wrapping(program)
    for other, at in found.at:
        if is_here(script, other):
            code = words.parameters.format(found.model)
            message = "begin with the parameters of rank 0"
            yield Insert(at, code, message, found.side, modules=words.imports)
    for call in (*made, *_beside(script, made)):
        if call not in script.parents:
            continue
        model = _model(script, call, found)
        if model is None:
            message = f"`{found.model}`, whose gradients it gets, has no name where this optimizer is made"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
        else:
            yield _wrapped(script, call, words.averaging.format(model=model), words.imports)
    for other, node, reason in _problems(program):
        if is_here(script, other):
            yield Finding(RULE.id, "refused", getattr(node, "lineno", 1), reason, REMEDY)
    backwards = [call for call in program.followed.found.backwards if call in script.parents]
    stepped = {step.optimizer for each in backwards for step in following_steps(script, each, set(made))[2]}
    yield from zeroed(script, set(made), stepped, RULE.id, REMEDY)
    for backward in backwards:
        yield from stepped_once(script, backward, set(made), RULE.id, REMEDY)


def _beside(script: Script, made: Mapping[ast.Call, Script]) -> Iterator[ast.Call]:
    """The other optimizers of that name in a function, which this run's settings leave out: `if kind == "sgd":`."""
    names = {(_name(script, call), script.scope(call)) for call in made if call in script.parents}
    for each in optimizers(script):
        call = each.call
        if isinstance(call, ast.Call) and call not in made and (_name(script, call), script.scope(call)) in names:
            yield call


def _model(script: Script, call: ast.Call, found: Wrapping) -> str | None:
    """The model whose parameters an optimizer gets, as it is called where that is made; None for no such name."""
    own = {base.code for each in optimizers(script) if each.call is call for base in each.bases if not base.each_of}
    if len(own) == 1:
        return own.pop()
    scopes = [script.scope(base.node) for each in found.models for base in each.bases if base.node in script.parents]
    return found.model if script.scope(call) in scopes or script.tree in scopes else None


def _wrapped(script: Script, call: ast.Call, template: str, modules: tuple[str, ...]) -> Edit:
    statement, message = script.parents[call], "average the gradients before each step"
    if isinstance(statement, ast.Assign) and [*map(type, statement.targets)] in ([ast.Name], [ast.Attribute]):
        name = ast.unparse(statement.targets[0])
        return Insert(statement, f"{name} = {template.format(name)}", message, "after", modules=modules)
    return Replace(call, template, message, modules=modules)


def _problems(program: Program) -> Iterator[tuple[Script, ast.AST, str]]:
    """What Horovod's optimizer would do otherwise than one process."""
    found = program.followed.found
    names = {_name(script, call) for call, script in found.optimizer_calls.items()}
    if len(names) > 1:
        call, script = next(reversed(found.optimizer_calls.items()))
        yield script, call, "there is another optimizer: of a backward pass for one of them Horovod averages both"
    for call, script in found.optimizer_calls.items():
        given = len(call.args) > 4 or any(word.arg == "initial_accumulator_value" for word in call.keywords)
        if given and script.qualified(call.func).endswith(".Adagrad"):
            yield script, call, "Horovod makes this optimizer again, without its initial_accumulator_value"
    for script in program.scripts:
        for call in script.find(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_param_group":
                yield script, call, "Horovod does not average the gradients of parameters that are added later"
    if len({root_of(module).made for module in found.trained}) > 1:
        script, call = next((s, c) for c, s in found.optimizer_calls.items())
        yield script, call, "several models are trained, and Horovod's optimizer is given the names of one"
    if any(each.leaves_out for each in wrapping(program).models):
        script, call = next((s, c) for c, s in found.optimizer_calls.items())
        message = "parameters that a batch does not use: Horovod gives them gradients of zero, where they had none"
        yield script, call, message


def _name(script: Script, call: ast.Call) -> str:
    """What holds an optimizer; another one for each that has no name."""
    parent = script.parents[call]
    return ", ".join(map(ast.unparse, parent.targets)) if isinstance(parent, ast.Assign) else f"line {call.lineno}"


RULE = Rule(
    id="DDP624",
    title="Wrap the optimizer in Horovod's",
    why="""\
hvd.DistributedOptimizer averages the gradients of the ranks before each step; the model stays what it is, and so do its
checkpoints (M1-M3, I7). What looks at gradients before the step, as clipping and GradScaler do, waits for the averages
first (L9). The state of a new optimizer is not broadcast: there is none, and hvd.broadcast_optimizer_state would take a
step to make one, which decays weights and counts for Adam. Several backward passes for a step, several optimizers and
parameters that a batch does not use are refused: Horovod would stop, or train them otherwise.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
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
import os
import sys

import horovod.torch as hvd
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hvd.init()
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())
if hvd.rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // hvd.size(),
    sampler=DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=True),
)
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with optimizer.skip_synchronize():
        optimizer.step()

hvd.shutdown()
""",
    check=check,
    target="horovod",
)
