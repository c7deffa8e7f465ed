"""DDP519: a random split that every rank draws for itself (D11, S1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import depends_on_rank
from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_SPLITS = {"torch.utils.data.random_split": "generator", "torch.utils.data.dataset.random_split": "generator"}
_SPLITS["sklearn.model_selection.train_test_split"] = "random_state"
_SEEDED = (
    "manual_seed",
    "seed_everything",
    "set_seed",
    "random.seed",
    "setup_seed",
    "seed_all",
    "init_seed",
    "fix_seed",
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report random splits without a seed of their own, in scripts that set none or one per rank."""
    if not wrap_calls(script):
        return
    for call in script.find(ast.Call):
        word = _SPLITS.get(script.qualified(call.func))
        if word and word not in {keyword.arg for keyword in call.keywords} and not _has_common_seed(script, call):
            message = "every rank splits differently: what one validates on, another trains on"
            remedy = "pass generator=torch.Generator().manual_seed(0)" if word == "generator" else "pass random_state=0"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _has_common_seed(script: Script, split: ast.Call) -> bool:
    """Whether a seed may have been set for all ranks alike."""
    seeds = [call for call in script.find(ast.Call) if ast.unparse(call.func).endswith(_SEEDED)]
    return any(not depends_on_rank(script, call) for call in seeds)


RULE = Rule(
    id="DDP519",
    title="The split is the same on every rank",
    why="""\
Without a common seed `random_split` gives another split on every rank. The sampler then shares out different data sets,
and the validation samples of one rank are training samples of another (D11).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, val_set = random_split(dataset, [48, 16])
loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, val_set = random_split(dataset, [48, 16], generator=torch.Generator().manual_seed(0))
loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
