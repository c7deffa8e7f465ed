"""DDP636: samplers that the script makes give way to those of the ranks; of some samples, they become a data set."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ...facts.flow.program import Followed
from ...facts.flow.values import UNEVEN, Loader
from ...facts.known_sampler import KnownSampler, is_alike, known_sampler, only_length_of, uses
from ...facts.loaders import names_in
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, DropImport, Edit, Finding, Replace, Rule
from ...targets import Target
from .evaluation_loader import is_used
from .words import REMEDY, is_here, program_of

_SUBSET: tuple[str, ...] = ("from torch.utils.data import Subset",)
_MESSAGE = "make a data set of the samples that are drawn"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Put data sets in the place of samplers of indices; read lengths and data sets from where they are then."""
    followed = program_of(script).followed
    calls = {loader.call for loader in followed.status if is_here(script, loader.script)}
    replaced: set[ast.Call] = set()
    taken = {*names_in(script)}
    for call in sorted(calls, key=lambda each: each.lineno):
        sampler = known_sampler(script, call)
        is_divided = _is_divided(followed, call)
        if sampler is None or (not is_divided and not sampler.shuffles):
            continue
        if sampler.assigned is not None and _is_elsewhere(script, sampler.assigned):
            message = f"{sampler.assigned.id} is used in another file, too, and there is none on a rank"
            yield Finding(RULE.id, "refused", call.lineno, message, "make it where its loader is made")
        replaced.add(sampler.made)
        name = _name(sampler, taken)
        taken.add(name)
        yield from _as_data_set(script, call, sampler, name) if sampler.is_subset else _left_out(script, call, sampler)
        if not is_divided:
            yield ChangeArgument(call, "", "", "take the samples in the same order on all ranks", "sampler")
    yield from _without_import(script, replaced)
    for node, loaders in followed.found.of_loaders.items():
        if is_here(script, followed.found.scripts[node]):
            yield from _read(script, node, loaders)


def _is_divided(followed: Followed, call: ast.Call) -> bool:
    """Whether a loader gets another sampler: as one of training (DDP603), or of an evaluation (DDP604)."""
    made = [each for each in followed.status if each.call is call and each.source is None]
    statuses = {followed.status[each] for each in made if is_used(followed, each)}
    return bool(statuses & {"training", "sharded", "batches"})


def _is_elsewhere(script: Script, name: ast.Name) -> bool:
    """Whether another file of the program may use a variable of this one."""
    others = [other for other in program_of(script).scripts if not is_here(script, other)]
    imported = (alias.name for other in others for each in other.find(ast.ImportFrom) for alias in each.names)
    read = (node.attr for other in others for node in other.find(ast.Attribute))
    return isinstance(script.scope(name), ast.Module) and name.id in {*imported, *read}


def _name(subset: KnownSampler, taken: Collection[str]) -> str:
    """What the samples of a sampler with a name are called; "" for one without."""
    if subset.assigned is None or not subset.is_after:
        return ""
    stem = re.sub(r"_?sampler$", "", subset.assigned.id)
    names = (f"{stem}_set" if stem else "subset", *(f"{stem or subset.assigned.id}_subset{n}" for n in ("", *range(9))))
    return next(name for name in names if name not in taken)


def _left_out(script: Script, call: ast.Call, sampler: KnownSampler) -> Iterator[Edit]:
    """Leave out a sampler of all samples, which the one of the ranks stands for."""
    if sampler.assigned is not None:
        dataset = ast.unparse(_data_set(call))
        lengths = [use for use in uses(script, sampler.assigned) if only_length_of(script, use)]
        yield Delete(script.statement(sampler.assigned), "each rank has a sampler of its own")
        yield from (Replace(use, dataset, "a rank's sampler has its part alone") for use in lengths)


def _data_set(call: ast.Call) -> ast.expr:
    return call.args[0] if call.args else next(word.value for word in call.keywords if word.arg == "dataset")


def _as_data_set(script: Script, call: ast.Call, subset: KnownSampler, name: str) -> Iterator[Edit]:
    dataset = _data_set(call)
    made, modules = "Subset", _SUBSET
    if isinstance(call.func, ast.Attribute) and script.qualified(call.func) == "torch.utils.data.DataLoader":
        made, modules = f"{ast.unparse(call.func.value)}.Subset", ()
    others = (
        [] if subset.assigned is None else [use for use in uses(script, subset.assigned) if only_length_of(script, use)]
    )
    if subset.assigned is None or not subset.is_after:
        indices = ast.unparse(subset.indices)
        yield Replace(dataset, f"{made}({{}}, {indices})", _MESSAGE, modules=modules)
        yield from (Replace(use, indices, _MESSAGE) for use in others)
        if subset.assigned is not None:
            yield Delete(script.statement(subset.assigned), _MESSAGE)
        return
    template = f"{made}({ast.unparse(dataset)}, {{}})"
    yield Replace(subset.made, template, _MESSAGE, modules=modules, parts=(subset.indices,))
    yield Replace(subset.assigned, name, _MESSAGE)
    yield Replace(dataset, name, _MESSAGE)
    yield from (Replace(use, name, _MESSAGE) for use in others)


def _without_import(script: Script, replaced: set[ast.Call]) -> Iterator[Edit]:
    """Leave out the imports of samplers of which all uses are gone."""
    for node in script.find(ast.ImportFrom):
        idle = []
        for alias in node.names:
            used = {each for each in script.find(ast.Name) if each.id == (alias.asname or alias.name)}
            idle += [alias.name] if used and used <= {call.func for call in replaced} else []
        if len(idle) == len(node.names):
            yield Delete(node, "no such sampler is left")
        else:
            yield from (DropImport(node, name, "no such sampler is left") for name in idle)


def _read(script: Script, node: ast.Attribute, loaders: set[Loader]) -> Iterator[Edit | Finding]:
    """Where the data set, or the sampler, of loaders is read: that of one process."""
    status = program_of(script).followed.status
    samplers = [known_sampler(loader.script, loader.call) for loader in loaders]
    of_subset = {sampler is not None and sampler.is_subset for sampler in samplers}
    if node.attr == "sampler" and is_alike(script, node):
        divided = any(status.get(loader) in ("training", *UNEVEN) for loader in loaders)
        if divided or True in of_subset:
            message = "a rank's sampler has its part alone"
            yield Replace(node, "{}.dataset", message, parts=(node.value,))
    elif node.attr == "dataset" and True in of_subset:
        if False in of_subset:
            message = f"`{ast.unparse(node)}` is here the data set of loaders that draw some of its samples, and all"
            yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)
        else:
            yield Replace(node, "{}.dataset", "the data set that the samples are of")


RULE = Rule(
    id="DDP636",
    title="The script's own samplers",
    why="""\
SubsetRandomSampler draws some samples of a data set, as those for training, and no other sampler can stand beside it.
A Subset has the same samples, and DistributedSampler gives each rank its part of them. RandomSampler and
SequentialSampler of all samples say what `shuffle` says. The length of a loader's sampler
is that of its data set then; on a rank, a sampler's own length is that of its part.""",
    before="""\
import torch
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
indices = torch.randperm(64).tolist()
train_sampler = SubsetRandomSampler(indices[:48])
train_loader = DataLoader(data, batch_size=8, sampler=train_sampler)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_loss = 0.0
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(x)
    print(train_loss / len(train_loader.sampler))
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Subset
from torch.utils.data.distributed import DistributedSampler


def sum_over_ranks(value):
    """The sum of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
indices = torch.randperm(64).tolist()
train_set = Subset(data, indices[:48])
train_loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    train_loss = 0.0
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(x)
    train_loss = sum_over_ranks(train_loss)
    print(train_loss / len(train_loader.dataset))

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
