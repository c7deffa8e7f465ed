"""DDP634: a mean over targets that count differently is divided by what the targets of all ranks count for."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ...facts.bindings import arguments, bindings
from ...facts.flow.own_losses import calls_its_own
from ...facts.flow.weighing import Weighed, loss_called
from ...facts.reach import never_used, reached_names
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .words import REMEDY, free_name, is_here, program_of

_MESSAGE = "targets of all ranks count together"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let losses with class weights, or ignored targets, sum up, and divide by what all ranks have."""
    made: dict[ast.Call, None] = {}
    for each in weighed(script):
        if each.keeps_mean:
            yield from _by_share(script, each, target)
            continue
        if not _is_called_there_alone(script, each):
            message = "class weights or ignored targets weigh the batches of the ranks differently"
            yield Finding(RULE.id, "refused", each.node.lineno, message, REMEDY)
        elif is_here(script, each.script):
            if each.made is each.node:
                yield _summed(each.made)
            apart = each.node not in program_of(script).followed.found.weighed_together
            count = each.count if apart else f"mean_over_ranks({each.count})"
            asks = each.asks or _asks_for_others(script, each)
            template = f"{{}} / ({count} if {asks} else 1)" if asks else f"{{}} / {count}"
            if each.trains:
                name = free_name(script, "counted")
                yield Insert(script.statement(each.node), f"{name} = {each.count}", _MESSAGE)
                template = f"{{}} / (mean_over_ranks({name}) if {each.trains} else {name})"
            template = template if _stands_free(script.parents[each.node]) else f"({template})"
            yield Replace(each.node, template, _MESSAGE, modules=target.words.imports)
        made |= dict.fromkeys(one for one in each.makes if one in script.parents and one is not each.node)
    yield from map(_summed, made)


def weighed(script: Script) -> list[Weighed]:
    """The calls of such losses that training makes, in a file or of what the file makes."""
    found = program_of(script).followed.found
    needed = (each for each in found.weighed.values() if each.keeps_mean or found.weighs & {*each.makes})
    here = (each for each in needed if is_here(script, each.script) or any(one in script.parents for one in each.makes))
    return sorted(here, key=lambda each: (each.node.lineno, each.node.col_offset))


def _by_share(script: Script, one: Weighed, target: Target) -> Iterator[Edit]:
    """Let a mean over a rank's own rows weigh as much as these are of all."""
    if is_here(script, one.script):
        template = f"{{}} * {one.count} / mean_over_ranks({one.count})"
        template = template if _stands_free(script.parents[one.node]) else f"({template})"
        yield Replace(one.node, template, _MESSAGE, modules=target.words.imports)


def _summed(made: ast.Call) -> Edit:
    given = "reduction" if any(word.arg == "reduction" for word in made.keywords) else ""
    return ChangeArgument(made, "reduction", '"sum"', _MESSAGE, given)


def _stands_free(parent: ast.AST) -> bool:
    """Whether a division needs no parentheses there."""
    sums = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub)
    return sums or isinstance(parent, ast.stmt)


def _is_called_there_alone(script: Script, one: Weighed) -> bool:
    """Whether all calls of a loss are known, so that it may be a sum."""
    program = program_of(script)
    found = program.followed.found
    name = _last(loss_called(one.node))
    if (
        found.not_weighed & {*one.makes}
        or _is_asked(program.scripts, name)
        or (one.made is not one.node and _is_handed_on(program.scripts, name))
    ):
        return False
    unused = _never_used(program.scripts)
    calls = (call for each in program.scripts for call in each.find(ast.Call) if not unused & {*each.ancestors(call)})
    named = [call for call in calls if _last(loss_called(call)) == name]
    named = [call for call in named if call not in one.makes or call is one.node]
    named = [call for call in named if not all(calls_its_own(program.scripts, call, each) for each in one.makes)]
    scope = one.script.scope(one.node)
    is_own = isinstance(scope, ast.FunctionDef) and name in bindings(one.script, scope)
    if is_own and isinstance(loss_called(one.node), ast.Name):  # of the function alone
        named = [call for call in named if call in one.script.parents and one.script.scope(call) is scope]
        named = [call for call in named if _given(one.script, call, name) in (*one.makes, None)]
    return one.made is one.node or all(call in found.weighed for call in named)


def _asks_for_others(script: Script, one: Weighed) -> str:
    """The code for whether a loss is divided, in a function that others call which this program never uses: what they
    give it is not changed here."""
    scope = one.script.scope(one.node)
    if one.made is one.node or not isinstance(scope, ast.FunctionDef):
        return ""
    parts = (part for each in _never_used(program_of(script).scripts) for part in ast.walk(each))
    return f'{ast.unparse(loss_called(one.node))}.reduction == "sum"' if scope.name in map(_last, parts) else ""


def _never_used(scripts: Collection[Script]) -> frozenset[ast.AST]:
    """The functions of imported files that nothing names which the program may reach: other programs call them."""
    names = never_used([*scripts]) if reached_names([*scripts]) is not None else {}
    tops = ((script, node) for script in names for node in script.tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(node for script, node in tops if node.name in names[script])


def _is_asked(scripts: Collection[Script], name: str) -> bool:
    """Whether it is asked, or set, of what may be a loss of a name how it reduces: `criterion.reduction`."""
    asked = (each for script in scripts for each in script.find(ast.Attribute) if each.attr == "reduction")
    return any(isinstance(each.value, ast.Name | ast.Attribute) and _last(each.value) == name for each in asked)


def _given(script: Script, call: ast.Call, name: str) -> ast.expr | None:
    """What a variable of a function was given last, above a call; None where another block may have given it more."""
    for at in (script.statement(call), *script.ancestors(script.statement(call))):
        parent = script.parents.get(at)
        blocks = (getattr(parent, each, ()) for each in ("body", "orelse", "finalbody"))
        block = next((each for each in blocks if isinstance(each, list) and at in each), [])
        for before in reversed(block[: block.index(at)] if at in block else []):
            if isinstance(before, ast.Assign) and ast.unparse(before.targets[0]) == name:
                return before.value
            if any(
                isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
                for each in ast.walk(before)
            ):
                return None
    return None


def _is_handed_on(scripts: Collection[Script], name: str) -> bool:
    """Whether the forward of what may be a loss of a name is taken without being called there, `measure =
    criterion.forward`."""
    assigned = [each for script in scripts for each in script.find(ast.Assign)]
    given = [each.targets for each in assigned if any(_last(one) == name for one in ast.walk(each.value))]
    names = {name, *(_last(one) for targets in given for target in targets for one in ast.walk(target))}
    for script in scripts:
        called = {each.func for each in script.find(ast.Call)}
        for each in script.find(ast.Attribute):
            owner = each.value
            if each.attr != "forward" or each in called:
                continue
            is_given = isinstance(owner, ast.Name) and owner.id in arguments(script.scope(each)) - {"self"}
            if is_given or not isinstance(owner, ast.Name | ast.Attribute) or _last(owner) in names:
                return True
    return False


def _last(func: ast.AST) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


RULE = Rule(
    id="DDP634",
    title="Divide by the targets of all ranks",
    why="""\
With class weights or an ignored target, the mean of a rank's batch is divided by what its own targets count for, which
is another number on each rank: the average over ranks is then not the mean of the batch (L3). Each rank takes the sum
of its targets, and divides it by the mean over ranks of what they count for. A mean over the steps of packed sequences
weighs as much as the steps of a rank do, beside the mean over ranks.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 3)
criterion = torch.nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 3)
criterion = torch.nn.CrossEntropyLoss(ignore_index=0, reduction="sum")
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = criterion(ddp_model(x), y) / mean_over_ranks((y != criterion.ignore_index).sum())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
