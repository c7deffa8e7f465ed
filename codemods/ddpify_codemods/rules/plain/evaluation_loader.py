"""DDP604: each rank evaluates every W-th sample, none twice, where what is measured can be added up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.options import in_other_order, options, shared_order, shown_of
from ...facts.flow.own_sizes import batch_sizes
from ...facts.flow.program import Followed
from ...facts.flow.values import Loader
from ...facts.keyword_dictionaries import keyword_dictionary
from ...facts.known_sampler import known_sampler
from ...facts.loaders import can_be_repeated, is_false, new_name, seen
from ...facts.script import Script
from ...plain_words import Words
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .mixed_loops import loader_of, mixed_loops
from .ratios import only_ratios_are_left
from .training_loader import with_sampler
from .words import REMEDY, is_here, program_of

_IN_ORDER = (
    "this evaluation goes in the order of the data set, not in a random one, so that its mean over batches, of which "
    "the last may be smaller, is of other batches"
)
_DRAWN_BATCHES = (
    "where next() takes one batch of this evaluation, each rank takes one that it draws for itself: what is shown of "
    "it, and decided by it, is rank 0's"
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give each evaluation's loader the samples of its rank; say so where all ranks evaluate everything."""
    followed = program_of(script).followed
    for loop in mixed_loops(script):
        is_told = loader_of(script, loop) is not None and target.words.name == "torch"
        if not is_told and not only_ratios_are_left(script, loop, followed.found):
            message = (
                "training and an evaluation that is not divided are one loop: a sum over ranks is right for one only"
            )
            yield Finding(RULE.id, "refused", getattr(loop, "lineno", 1), message, REMEDY)
    trained = {loader.call for loader, status in followed.status.items() if status == "training"}
    done = set(trained)  # a function may make several loaders by one call
    said: set[ast.Call] = set()
    for loader, status in sorted(followed.status.items(), key=lambda each: each[0].call.lineno):
        if loader.source is not None:
            continue  # DDP620
        if not is_here(script, loader.script):
            continue
        if loader in followed.found.drawn_batches and status == "whole":
            yield Finding(RULE.id, "note", loader.call.lineno, _DRAWN_BATCHES, "none needed")
        if not is_used(followed, loader):
            continue
        if status == "whole" and loader.call in trained - said:
            said.add(loader.call)
            yield _said(followed, loader, "the call that makes its loader makes that of training, too")
        if loader.call in done:
            continue
        done.add(loader.call)
        if status == "whole":
            yield from _whole(followed, loader)
        elif status == "batches":
            yield from _by_batches(script, loader, target.words)
        elif status == "sharded":
            name = options(script, loader.call)
            words = target.words
            yield from [_changed(script, loader, name, words)] if name else _divided(script, loader, words)
            if (ordered := shared_order(script, loader.call)) is not None:
                yield Replace(ordered.name, in_other_order(ordered), "evaluate this rank's samples, none twice")
    yield from _needs_samples(script, followed)


def _needs_samples(script: Script, followed: Followed) -> Iterator[Finding]:
    """Say where a rank that has no sample of a divided evaluation would have a number instead of a tensor."""
    found: dict[ast.AST, list[str]] = {}
    for (there, loop, name), loaders in followed.found.needs_sample.items():
        if is_here(script, there) and any(followed.status.get(each) == "sharded" for each in loaders):
            found.setdefault(loop, []).append(f"`{name}`")
    for loop, names in sorted(found.items(), key=lambda each: getattr(each[0], "lineno", 1)):
        message = (
            f"with fewer samples than ranks, one of them would have a number in {', '.join(sorted(names))} where the "
            "others have a tensor, and the run end with an error"
        )
        remedy = "none needed where there are as many samples as ranks; `.item()` of what is added would do"
        yield Finding(RULE.id, "note", getattr(loop, "lineno", 1), message, remedy)


def is_used(followed: Followed, loader: Loader) -> bool:
    return any(loader in (each, each.source) for loaders in followed.found.loops.values() for each in loaders)


def _divided(script: Script, loader: Loader, words: Words) -> Iterator[Edit]:
    shown = shown_of(script, loader.call)
    assert shown is not None
    sampler = known_sampler(script, loader.call)
    is_subset = sampler is not None and sampler.is_subset
    named = sampler.is_after if is_subset and sampler else can_be_repeated(script, shown.dataset)
    name = "" if named else new_name(script, loader.call)
    message = "evaluate this rank's samples, none twice"
    return with_sampler(loader.call, words.shard, message, (shown.dataset,), name, words.imports)


def _by_batches(script: Script, loader: Loader, words: Words) -> Iterator[Edit | Finding]:
    """Give each rank every W-th batch, where numbers of batches are added up."""
    sizes = batch_sizes(loader)
    if not sizes or (isinstance(sizes[0], ast.Constant) and sizes[0].value == 1):
        yield from _divided(script, loader, words)
        return
    shown = seen(script, loader.call)
    assert shown is not None
    if not is_false(shown.shuffle):
        yield Finding(RULE.id, "note", loader.call.lineno, _IN_ORDER, "none needed")
    name = "" if can_be_repeated(script, shown.dataset) else new_name(script, loader.call)
    message = "evaluate this rank's batches, none twice"
    parts = (shown.dataset, sizes[0])
    yield from with_sampler(loader.call, words.shard_of_batches, message, parts, name, words.imports)


def _changed(script: Script, loader: Loader, name: str, words: Words) -> Edit:
    """Change the dictionary that the options come from."""
    dataset = ast.unparse(loader.call.args[0])
    code = f'{name}.pop("shuffle", None)\n{name}["sampler"] = {words.shard.format(dataset)}'
    message = "evaluate this rank's samples, none twice"
    return Insert(script.statement(loader.call), code, message, modules=words.imports)


def _said(followed: Followed, loader: Loader, reason: str) -> Finding:
    """That an evaluation is not divided, and why: for that reason, where no other is known."""
    line, remedy = loader.call.lineno, "right, but no faster; --style exact divides it"
    if loader in followed.found.drawn_evaluations:
        message = "every rank evaluates all of it, with samples or in an order of its own: its numbers are rank 0's"
        return Finding(RULE.id, "note", line, message, remedy)
    problem = followed.whole.get(loader)
    if problem is not None:
        at = getattr(problem.node, "lineno", line)
        reason = problem.reason + (f" (line {at})" if problem.script is loader.script else "")
    return Finding(RULE.id, "note", line, f"every rank evaluates all of it: {reason}", remedy)


def _whole(followed: Followed, loader: Loader) -> Iterator[Edit | Finding]:
    yield _said(followed, loader, "what is loaded is not said in this call")
    if loader in followed.found.drawn_evaluations:
        return
    orders = [*loader.call.args[2:3], *(word.value for word in loader.call.keywords if word.arg == "shuffle")]
    shuffled = not all(map(is_false, orders))
    ordered = keyword_dictionary(loader.script, loader.call)
    if ordered is not None and not is_false(ordered.entries.get("shuffle")) and "torch" in followed.drawn:
        yield Replace(ordered.name, in_other_order(ordered), "evaluate in the same order on all ranks")
    if shuffled and "torch" in followed.drawn:  # each rank would have an order, and so numbers, of its own (E4)
        order = "shuffle" if len(loader.call.args) < 3 else "2"
        yield ChangeArgument(loader.call, "shuffle", "False", "evaluate in the same order on all ranks", order)


RULE = Rule(
    id="DDP604",
    title="Divide evaluations",
    why="""\
DistributedSampler would fill the ranks' parts up with samples that then count twice (E1). A range gives each rank every
W-th sample and no other; what the loop adds up is summed over the ranks afterwards (E2, E3). Where it adds up a
number of each batch, as the mean loss, each rank evaluates every W-th batch of one process. Where it does something
else, each rank evaluates everything.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(30, 4), torch.randint(2, (30,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=8)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
correct = 0
with torch.no_grad():
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum().item()
print(correct / len(test_set))
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
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

train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(30, 4), torch.randint(2, (30,)))
train_loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
test_loader = DataLoader(
    test_set,
    batch_size=8,
    sampler=range(dist.get_rank(), len(test_set), dist.get_world_size()),
)
model = torch.nn.Linear(4, 2)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
correct = 0
with torch.no_grad():
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum().item()
correct = sum_over_ranks(correct)
print(correct / len(test_set))
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
