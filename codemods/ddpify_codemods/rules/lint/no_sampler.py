"""DDP502: a training loader that every rank runs through whole (D1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import bindings, names_in
from ...facts.distributed import depends_on_rank
from ...facts.hand_written import LoaderCall, feeds_training, loaders, sampler_calls, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_DIVIDES = ("split_dataset_by_node", "num_shards", "shard(", "IterableDataset", "prepare(")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report shuffled training loaders without a sampler, in scripts that divide nothing by rank."""
    if not wrap_calls(script) or any(sampler_calls(script)) or any(word in script.text for word in _DIVIDES):
        return
    for loader in loaders(script):
        if _shuffles(loader) and not _depends_on_rank(script, loader) and feeds_training(script, loader):
            message = (
                "every process trains on the whole data set: with one seed on the same batches, else on random ones"
            )
            remedy = "give it a torch.utils.data.DistributedSampler in place of shuffle=True"
            yield Finding(RULE.id, "warning", loader.call.lineno, message, remedy)


def _shuffles(loader: LoaderCall) -> bool:
    value = loader.keywords.get("shuffle")
    own = {"sampler", "batch_sampler", "**"} & loader.keywords.keys()
    return isinstance(value, ast.Constant) and value.value is True and not own


def _depends_on_rank(script: Script, loader: LoaderCall) -> bool:
    """Whether a rank is mentioned where the loader or its data set is made."""
    names = names_in(loader.call)
    known = bindings(script, script.scope(loader.call)), bindings(script, script.tree)
    made = [value for scope in known for name in names for value in scope.get(name, ())]
    return any(depends_on_rank(script, value) for value in (loader.call, *made))


RULE = Rule(
    id="DDP502",
    title="The training data is divided",
    why="""\
DistributedDataParallel averages gradients; it does not divide the data. With one seed all processes compute the same
gradient of the same batch, which is no faster than one process; without, an epoch sees each sample world_size times
(D1).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
