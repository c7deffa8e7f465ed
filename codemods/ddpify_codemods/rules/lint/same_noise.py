"""DDP518: one seed for all ranks, and noise that is drawn in the training loop (S2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import depends_on_rank
from ...facts.hand_written import training_loops, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_DRAWS = frozenset({"torch.randn", "torch.rand", "torch.randn_like", "torch.rand_like"})
_SEEDS = frozenset({"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report draws in training loops, in scripts that seed every rank alike."""
    seeds = [call for call in script.find(ast.Call) if script.qualified(call.func) in _SEEDS and call.args]
    if (
        not wrap_calls(script)
        or not seeds
        or any(_is_own(script, call) for call in seeds)
        or "set_rng_state" in script.text
    ):
        return
    for loop in training_loops(script):
        for call in (part for part in ast.walk(loop) if isinstance(part, ast.Call)):
            if script.qualified(call.func) in _DRAWS and not any(word.arg == "generator" for word in call.keywords):
                message = f"{ast.unparse(call.func)} gives the same numbers on every rank: one seed for all"
                remedy = "seed with `seed + rank` once the model is wrapped"
                yield Finding(RULE.id, "warning", call.lineno, message, remedy)
                return


def _is_own(script: Script, call: ast.Call) -> bool:
    """Whether a seed may differ between ranks: it is no constant or option, or a rank is in it."""
    plain = isinstance(call.args[0], (ast.Constant, ast.Attribute))
    return not plain or depends_on_rank(script, call)


RULE = Rule(
    id="DDP518",
    title="Noise differs between the ranks",
    why="""\
Ranks that start from one seed draw the same latent vectors, noise and dropout masks for their different samples. A
batch of W ranks then holds W copies of the same noise (S2).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
dataset = TensorDataset(torch.rand(64, 2))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    z = torch.randn(len(x), 2)
    nn.functional.mse_loss(model(z), x).backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
dataset = TensorDataset(torch.rand(64, 2))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    z = torch.randn(len(x), 2)
    nn.functional.mse_loss(model(z), x).backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
