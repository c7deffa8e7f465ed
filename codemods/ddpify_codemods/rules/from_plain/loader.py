"""DDP703: a loader draws all samples, in an order of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import draws_part, is_every_wth, is_every_wth_batch
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_MESSAGE = "leave the order to the loader"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let loaders say what their samplers stand for; tell nobody the epoch."""
    for word in script.find(ast.keyword):
        call = script.parents[word]
        if word.arg != "sampler" or not isinstance(call, ast.Call):
            continue
        shuffle, made = _stands_for(script, word.value)
        if made is None:
            continue
        if (shared := _in_other_order(script, call)) is not None:
            yield ChangeArgument(call, "", "", _MESSAGE, "sampler")
            yield Replace(shared, "{}", _MESSAGE, parts=(shared.args[0],), bare=True)
            yield from _unnamed(script, call, made)
            continue
        if shuffle is None and word is call.keywords[-1]:
            yield ChangeArgument(call, "", "", _MESSAGE, "sampler")
        elif shuffle is None:  # conversions put a sampler last, but in the place of `shuffle`
            yield ChangeArgument(call, "shuffle", "False", _MESSAGE, "sampler")
        else:
            yield ChangeArgument(call, "shuffle", "{}", _MESSAGE, "sampler", parts=(shuffle,))
        yield from _unnamed(script, call, made)
    for statement in script.find(ast.stmt):
        if _counts_loaders(script, statement):
            yield Delete(statement, _MESSAGE)
        elif _sets_epoch(statement):
            yield Delete(statement, "no sampler has to be told the epoch")
        elif _options(script, statement) is not None:
            yield Delete(statement, _MESSAGE)
            yield from _popped(script, statement)


def _in_other_order(script: Script, call: ast.Call) -> ast.Call | None:
    """The dictionary of a loader's options without their order: `**dict(options, shuffle=False)`."""
    hidden = [word.value for word in call.keywords if word.arg is None]
    made = hidden[0] if len(hidden) == 1 else None
    if not isinstance(made, ast.Call) or script.qualified(made.func) != "dict" or len(made.args) != 1:
        return None
    last = made.keywords[-1] if made.keywords else None
    ordered = last is not None and last.arg == "shuffle" and ast.unparse(last.value) == "False"
    return made if ordered and isinstance(made.args[0], ast.Name) else None


def _stands_for(script: Script, value: ast.expr) -> tuple[ast.expr | None, ast.Call | None]:
    """What a sampler says of shuffling, where it says more than False; and the call that names the data set."""
    if isinstance(value, ast.IfExp) and draws_part(script, value.body):
        other = is_every_wth(script, value.orelse) or ast.unparse(value.orelse) == "None"
        return (value.test, value.body) if other else (None, None)  # type: ignore[return-value]
    if is_every_wth(script, value):
        return None, value.args[1]  # type: ignore[attr-defined]
    if is_every_wth_batch(script, value):
        return None, value.generators[0].iter.args[0]  # type: ignore[attr-defined]
    if not draws_part(script, value):
        return None, None
    assert isinstance(value, ast.Call)
    shuffles = [word.value for word in value.keywords if word.arg == "shuffle"]
    if not shuffles:
        return None, None  # conversions say whether
    is_false = isinstance(shuffles[0], ast.Constant) and not shuffles[0].value
    return None if is_false else shuffles[0], value


def _unnamed(script: Script, call: ast.Call, made: ast.Call) -> Iterator[Edit]:
    """Take the name back that a data set was given in the call of its loader, for the sampler."""
    loaded = next(iter([*call.args[:1], *(word.value for word in call.keywords if word.arg == "dataset")]), None)
    if not isinstance(loaded, ast.NamedExpr):
        return
    name = loaded.target.id
    own = {each for other in script.find(ast.NamedExpr) if other.target.id == name for each in _asked(script, other)}
    uses = [each for each in script.find(ast.Name) if each.id == name and each not in own]
    if not uses:
        yield Replace(loaded, "{}", "", parts=(loaded.value,), bare=True)


def _asked(script: Script, named: ast.NamedExpr) -> Iterator[ast.AST]:
    """The name that a data set is given in a call, and where its sampler there asks for it."""
    yield named.target
    call = next((each for each in script.ancestors(named) if isinstance(each, ast.Call)), None)
    for word in call.keywords if call is not None else ():
        if word.arg == "sampler":
            yield from ast.walk(word.value)


def _counts_loaders(script: Script, node: ast.stmt) -> bool:
    """Whether it is `orders = itertools.count()`, by which nothing but the seeds of samplers goes."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if not isinstance(target, ast.Name) or ast.unparse(node) != f"{target.id} = itertools.count()":
        return False
    uses = [each for each in script.find(ast.Name) if each.id == target.id and each is not target]
    calls = [script.parents[each] for each in uses]
    words = [script.parents[each] for each in calls if ast.unparse(each) == f"next({target.id})"]
    seeds = [each for each in words if isinstance(each, ast.keyword) and each.arg == "seed"]
    return len(seeds) == len(uses) > 0 and all(draws_part(script, script.parents[each]) for each in seeds)


def _sets_epoch(node: ast.stmt) -> bool:
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.test, ast.Call):
        return ast.unparse(node.test.func) == "isinstance" and all(map(_sets_epoch, node.body))
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.func
    on = called.value if isinstance(called, ast.Attribute) and called.attr == "set_epoch" else None
    return isinstance(on, ast.Attribute) and on.attr == "sampler"


def _options(script: Script, node: ast.stmt) -> str | None:
    """The dictionary that is given a sampler: `options["sampler"] = DistributedSampler(data, shuffle=…)`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
        return None
    named = isinstance(node.targets[0].slice, ast.Constant) and node.targets[0].slice.value == "sampler"
    made = is_every_wth(script, node.value) or draws_part(script, node.value)
    return ast.unparse(node.targets[0].value) if named and made else None


def _popped(script: Script, statement: ast.stmt) -> Iterator[Edit]:
    """Leave `shuffle` among the options, where the statement above takes it out for an evaluation."""
    name = _options(script, statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(script.parents[statement], field, [])
        before = block[block.index(statement) - 1] if isinstance(block, list) and statement in block[1:] else None
        if before is not None and ast.unparse(before) == f"{name}.pop('shuffle', None)":
            yield Delete(before, "")


RULE = Rule(
    id="DDP703",
    title="Draw all samples",
    why="""\
The inverse of DDP603 and DDP604: the loader shuffles where its DistributedSampler did, and evaluates all samples.
Whether an evaluation was shuffled once is not known, and changes none of its sums (E1).""",
    before="""\
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

train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
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
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

dist.destroy_process_group()
""",
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    check=check,
    target="none",
)
