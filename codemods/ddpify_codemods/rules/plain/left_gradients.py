"""DDP654: a backward pass leaves gradients in those models alone by whose gradients something is stepped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import called_model
from ...facts.flow.frames import FlowFacts
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Rule
from ...targets import Target
from .words import REMEDY, is_here, program_of

_MESSAGE = "leave gradients only where a step follows"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Say whose gradients are wanted, where two backward passes go through one forward."""
    found = program_of(script).followed.found
    for backward in sorted({call for call, _ in found.aside}, key=lambda call: call.lineno):
        if not is_here(script, found.scripts[backward]):
            continue
        models = _stepped(script, found, backward)
        if models is None:
            message = (
                "two backward passes go through one forward, and the models that this one is for have no name here"
            )
            yield Finding(RULE.id, "refused", backward.lineno, message, REMEDY)
            continue
        yield ChangeArgument(backward, "inputs", _parameters(models, _freezes(script)), _MESSAGE)


def _parameters(models: list[str], some_are_frozen: bool) -> str:
    """The code of all parameters of some models that get gradients."""
    each = [f"*{model}.parameters()" for model in models]
    code = f"[{', '.join(each)}]" if len(each) > 1 else f"list({each[0][1:]})"
    if not some_are_frozen:
        return code
    return f"[p for p in {code if len(each) > 1 else each[0][1:]} if p.requires_grad]"


def _freezes(script: Script) -> bool:
    """Whether the program freezes or unfreezes parameters."""
    attributes = (node for each in program_of(script).scripts for node in each.find(ast.Attribute))
    return any(node.attr in ("requires_grad", "requires_grad_") for node in attributes)


def _stepped(script: Script, found: FlowFacts, backward: ast.Call) -> list[str] | None:
    """The code of the models by whose gradients of a backward pass something is stepped; None where one has no name."""
    names = []
    for model in [model for call, model in found.stepped if call is backward]:
        calls = (call for call in found.reached.get((backward, model), ()) if call in script.parents)
        called = (called_model(call) for call in calls if script.scope(call) is script.scope(backward))
        named = {ast.unparse(each) for each in called if isinstance(each, ast.Name | ast.Attribute)}
        if not named:
            return None
        names.append(min(named))
    return sorted(names)


RULE = Rule(
    id="DDP654",
    title="Leave gradients only where a step follows",
    why="""\
The critic of a Wasserstein GAN goes backward through the images that the generator made, and the generator through the
same images afterwards. DistributedDataParallel counts one backward pass for each forward (L10). What the critic's
leaves in the generator is set to zero before the generator steps: it need not be computed.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
generator, critic = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for (real,) in loader:
    fake = generator(torch.randn(len(real), 2))
    loss = critic(fake).mean() - critic(real).mean()
    for_critic.zero_grad()
    loss.backward(retain_graph=True)
    for_critic.step()
    loss = -critic(fake).mean()
    for_generator.zero_grad()
    loss.backward()
    for_generator.step()
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

dataset = TensorDataset(torch.rand(64, 4))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
generator, critic = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
ddp_generator = DistributedDataParallel(generator)
for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
ddp_critic = DistributedDataParallel(critic, broadcast_buffers=False)
for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
if dist.get_rank() != 0:  # noise of its own for its samples
    torch.manual_seed(torch.initial_seed() + dist.get_rank())
for (real,) in loader:
    fake = ddp_generator(torch.randn(len(real), 2))
    loss = ddp_critic(fake).mean() - ddp_critic(real).mean()
    for_critic.zero_grad()
    loss.backward(retain_graph=True, inputs=list(critic.parameters()))
    for_critic.step()
    loss = -critic(fake).mean()
    for_generator.zero_grad()
    loss.backward()
    for_generator.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
