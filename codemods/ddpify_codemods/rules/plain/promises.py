"""DDP611: what plain code cannot promise is said."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.batch_norm import asked_for
from ...facts.called_modules import last_name
from ...facts.earlier_samples import own_generators
from ...facts.flow.batches import sure_size
from ...facts.flow.noise import comes_with_dropout, names_dropout
from ...facts.flow.own_sizes import multiplies
from ...facts.flow.program import Program
from ...facts.flow.size_in_numbers import computed_with
from ...facts.flow.small_batches import smallest
from ...facts.flow.values import Loader
from ...facts.keyword_dictionaries import drops_last
from ...facts.named_devices import names_gpu
from ...facts.pooled_norms import pooled_norms
from ...facts.reach import inside
from ...facts.script import Script
from ...facts.seeds import fixed_worker_seeds
from ...plain_words import TORCH
from ...rule import Edit, Finding, Rule
from ...targets import Target
from .seeds import unseeded
from .training_loader import is_whole_batch
from .words import names_something, normalizes, program_of
from .wrapper import synchronized

_ALONE = "also where that of one process has several"
_FEW = 8  # a batch of so many is divided by the GPUs of a machine


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Say, once for a program, what differs from one process."""
    program = program_of(script)
    if not script.is_entry or not program.followed.found.training:
        return
    first = min(loader.call.lineno for loader in program.followed.found.training)
    line = first if any(each.script.path == script.path for each in program.followed.found.training) else 1
    yield Finding(
        RULE.id,
        "warning",
        line,
        "the ranks draw their samples in the order of DistributedSampler, not in that of one process; "
        f"{_twice(program, target)}{_rounded(program, target)}",
        "none needed; --style exact keeps the order",
    )
    of_all = program.followed.found.joined and multiplies(program.scripts, program.followed.found)
    if (program.followed.found.full_batches or of_all) and not program.per_process:
        message = "the script gives tensors the batch size: W has to divide it, and the last batch has to be as large"
        yield Finding(RULE.id, "warning", line, message, "choose a batch size that W divides, or drop_last=True")
    elif computed := computed_with(program.scripts, program.followed.found):
        yield _of_numbers(*computed, line, program.per_process)
    if (few := smallest(program.followed.found, program.scripts)) and few[0] < _FEW and not program.per_process:
        yield _few(*few, line)
    if unseeded(program):
        message = "each run begins with the same random numbers, from seed 0, where the original draws others each time"
        yield Finding(RULE.id, "warning", line, message, "none needed for one run; several need seeds of their own")
    for message, remedy in target.words.differs:
        yield Finding(RULE.id, "warning", line, message, remedy)
    if program.per_process:
        message = "the batch size is that of each process: W ranks train on batches W times as large"
        yield Finding(RULE.id, "warning", line, message, "adapt the learning rate, as a rule W times as large")
    moves_all = target.retargets == "own"  # the rules that move it on to its device see to batches, too
    if target.module and target.words.name == TORCH.name and not moves_all and not names_gpu(program.scripts):
        message = f"no {target.name} device is named, so that every rank trains on the CPU"
        remedy = f'model.to("{target.device_type}") and the same for its batches, in the script for one device'
        if synchronized(program, target):
            message = f"{message}, where SyncBatchNorm raises"
            yield Finding(RULE.id, "refused", line, message, f"{remedy}, or leave out --sync-batchnorm")
        else:
            yield Finding(RULE.id, "warning", line, message, remedy)
    if normalizes(program) and not synchronized(program, target):
        remedy = (
            "--sync-batchnorm" if target.synchronizes_batch_norm else "--style exact takes those of the whole batch"
        )
        message = "BatchNorm takes its statistics from the batch of each rank"
        if not names_something(program, "BatchNorm") and program.followed.found.of_others:
            message = (
                "if the model has BatchNorm, which is not seen, it takes its statistics from the batch of each rank"
            )
        yield Finding(RULE.id, "warning", line, message, remedy)
        drops = all(map(sure_size, program.followed.found.training))
        if not drops and names_something(program, "BatchNorm1d") and _may_make(program, "BatchNorm1d"):
            message = f"where a rank's last batch has one sample, BatchNorm1d ends with an error, {_ALONE}"
            yield Finding(RULE.id, "warning", line, message, "drop_last=True where that may be")
        elif not drops:
            yield from _pooled(program, line)
    left_out = program.followed.found.only_evaluated
    if any(comes_with_dropout(each, left_out) or names_dropout(each, left_out) for each in program.scripts):
        message = "dropout draws its masks on each rank, from a seed of its own, not those of one process"
        yield Finding(RULE.id, "warning", line, message, "none needed")
    found = program.followed.found
    seeded = target.words.name == TORCH.name  # DDP655 seeds the workers of each rank otherwise
    for nodes, message, remedy in (
        (
            found.mixes,
            "each rank mixes its own samples with each other, not those of the whole batch",
            "none needed; --style exact mixes those of the whole batch",
        ),
        (
            found.pads,
            "each rank pads to the longest of its own samples, not of the whole batch",
            "none needed where attention masks leave out what is padded; --style exact pads to that of the whole batch",
        ),
        (
            found.may_meet,
            "the model gives one of these tensors a dimension more: where the other has fewer, such as `(B, 3)` beside "
            "`(B, 1, 3)`, this makes a loss for each two samples of a rank's batch, not of the whole one",
            "none needed where both have one shape; .squeeze(1) is meant as a rule where they have not",
        ),
        (
            found.sizes_shown,
            "this shows the sizes of rank 0's part of a batch, not those of the whole one",
            "none needed",
        ),
        (
            {call for each in program.scripts if not seeded for call in fixed_worker_seeds(each)},
            "this seeds the workers of all ranks alike, which draw the same noise for other samples (S2)",
            "torch.initial_seed() in a worker is another number on each rank",
        ),
        (
            {each for other in program.scripts for each in own_generators(other)},
            "by this generator of the data set's own, ranks draw the same noise for other samples (S2)",
            "leave it out, so that the noise is drawn by the generators that each rank seeds for itself",
        ),
    ):
        for node in sorted(nodes, key=lambda each: each.lineno)[:1]:
            at = node.lineno if node in script.parents else line  # type: ignore[attr-defined]
            yield Finding(RULE.id, "warning", at, message, remedy)


def _of_numbers(script: Script, node: ast.expr, line: int, per_process: bool) -> Finding:
    """Say what becomes of a number that is computed with the batch size."""
    where = f"a number is computed with the batch size ({script.path.name}, line {node.lineno})"
    if per_process:
        message = f"{where}, which W ranks take each: a rate of a batch is W times too large, a count of batches too"
        return Finding(RULE.id, "warning", line, message, "divide by the batch size of all ranks there")
    message = f"{where}: it is another one where W does not divide that, since the batches are smaller then"
    return Finding(RULE.id, "warning", line, message, "choose a batch size that W divides")


def _twice(program: Program, target: Target) -> str:
    """How many samples come twice: none, where the sampler itself leaves out the last ones, as the loader does."""
    found = program.followed.found
    drops = all(
        drops_last(each.script, each.call) and not _is_rounded_up(each, program, target) for each in found.training
    )
    left_out = drops and not target.words.loader  # an engine's own sampler is not told
    return (
        "with drop_last=True none comes twice"
        if left_out
        else "up to W - 1 of them come twice in an epoch, and count twice in what it adds up"
    )


def _rounded(program: Program, target: Target) -> str:
    """What becomes of a batch size that ranks do not divide: of a whole data set, none is left out."""
    up = {_is_rounded_up(each, program, target) for each in program.followed.found.training}
    said = "a batch of a whole data set that W ranks do not divide is rounded up" if True in up else ""
    down = "a batch size that W ranks do not divide is rounded down" if False in up else ""
    return f", and {', '.join(each for each in (down, said) if each)}"


def _is_rounded_up(loader: Loader, program: Program, target: Target) -> bool:
    return is_whole_batch(program, loader.script, loader.call, target.words) is True


def _pooled(program: Program, line: int) -> Iterator[Finding]:
    """Say, once, where BatchNorm gets one value per channel of each sample."""
    visited = program.followed.found.visits
    found = [(script, *each) for script in program.scripts for each in pooled_norms(script) if each[0] in visited]
    for script, norm, sure in sorted(found, key=lambda each: not each[2])[:1]:
        leaves = "leaves" if sure else "may leave"
        why = f"a pooling {leaves} it one value per channel ({script.path.name}, line {norm.lineno})"
        message = f"where a rank's last batch has one sample, BatchNorm ends with an error, {_ALONE}: {why}"
        yield Finding(RULE.id, "warning", line, message, "drop_last=True where that may be")


def _may_make(program: Program, name: str) -> bool:
    """Whether a program comes to where a layer is made, or hands on its class, which may make it."""
    for script in program.scripts:
        asked = inside(frozenset(asked_for(script)))
        for node in script.find(ast.Name, ast.Attribute):
            call = script.parents[node]
            if last_name(node) != name or isinstance(call, ast.Attribute) or node in asked:
                continue
            unused = isinstance(call, ast.Call) and call.func is node and call not in program.followed.found.visits
            if not unused:
                return True
    return False


def _few(size: int, option: str, written: str, line: int) -> Finding:
    """Say that a batch size may not be enough for all ranks; option: the one that it is the default of; written: the
    product that it is of a list with one entry."""
    said = f"the batch size is {size}" + (f", by `{written}` with one of these" if written else "")
    said += (", " if written else " ") + f"where `{option}` is not given" if option else ""
    if size == 1:
        message = f"{said}, which two ranks or more divide to 0: DataLoader raises"
    else:
        message = f"{said}: with W larger than that, a rank's part is 0, and DataLoader raises"
    larger = f"start it with a larger `{option}`" if option else "choose a larger one"
    return Finding(RULE.id, "warning", line, message, f"{larger}, or convert it with --batch-size per-process")


RULE = Rule(
    id="DDP611",
    title="What plain code does not promise",
    why="""\
The order of samples is that of DistributedSampler, which fills the ranks' parts up with a few samples that come twice
(D1, D6); BatchNorm normalizes with the statistics of a rank's own batch (M8) unless it is synchronized; dropout masks
are others (S4); what mixes a batch with itself, shuffled (mixup), mixes a rank's part of it; what pads texts pads
to the longest of a rank's part; a generator of the data set's own makes ranks augment alike (S2).
A script that names no device trains on the CPU here, too; it is refused with --sync-batchnorm, since torch's
SyncBatchNorm takes no tensors of the CPU (M8).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
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

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
