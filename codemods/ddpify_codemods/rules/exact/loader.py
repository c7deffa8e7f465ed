"""DDP109: each process loads its own rows of every batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import under_rank_guard
from ...facts.loaders import Seen, can_be_repeated, is_false, new_name, says_no_sampler, seen
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, ReplaceImport, Rule
from ...targets import Target

_LOADERS = {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
# Methods of TensorBoard and visdom writers, which would wait for the others' rows where the script calls them on rank 0
# alone; those of a writer that rank_zero_only makes are called, and given whole batches, by all ranks.
_SHOWS_BATCHES = {"add_image", "add_images", "add_graph", "add_embedding", "add_video", "images", "image"}
_REMEDY = "every process loads whole batches and takes its rows of them: right, but slower"
_MESSAGE = "load only this rank's rows of each batch"
_NAMED = "name the order of which each rank takes its rows"
# What torch's loader does by itself, and that of ddpify_runtime otherwise: a class derived from it may not touch it.
_INSIDE = {"_auto_collation", "_get_iterator", "_index_sampler", "_iterator"}
_SAMPLER, _WRAPPER = "DistributedSampler", "DistributedSamplerWrapper"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the DataLoader of ddpify_runtime instead of torch's, and name the sampler where one is made in sight."""
    uses = [node for node in script.find(ast.Name, ast.Attribute) if _is_loader(script, node)]
    for node in uses:
        if (derived := _derived(script, node)) and (name := _touched(derived)):
            line = script.statement(node).lineno
            reason = f"a class derived from DataLoader has a `{name}` of its own: its loaders stay torch's"
            yield Finding(RULE.id, "note", line, reason, _REMEDY)
            return
    made = [node for node in uses if _is_made(script, node)]
    for call in script.find(ast.Call):
        if made and (method := _shows_batches(script, call)):
            line = script.statement(call).lineno
            reason = f"{method} may need a whole batch on rank 0: its loaders stay torch's"
            yield Finding(RULE.id, "note", line, reason, _REMEDY)
            return
    for node in made:
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and _comes_from_elsewhere(script, node)):
            yield Replace(node, "DataLoader", _MESSAGE, ("DataLoader",))
        parent = script.parents[node]
        if not isinstance(parent, ast.Call) or parent.func is not node or len(parent.args) > 2:
            continue  # of an order that is no keyword --target none could not give back the very text
        if says_no_sampler(parent):
            continue  # nor of two keywords
        if shown := seen(script, parent):
            yield from _named(script, parent, shown)
    if made:  # an import that nothing uses too: its name is free then
        for statement in script.find(ast.ImportFrom):
            for alias in statement.names:
                if f"{statement.module}.{alias.name}" in _LOADERS:
                    yield ReplaceImport(statement, alias.name, _MESSAGE)


def _named(script: Script, call: ast.Call, shown: Seen) -> Iterator[Edit]:
    """Edits that write the sampler that the call's order stands for, or wrap the script's own."""
    if shown.sampler is not None:
        yield Replace(shown.sampler, f"{_WRAPPER}({{}})", _NAMED, (_WRAPPER,))
        return
    name = ""
    if not can_be_repeated(script, shown.dataset):
        name, words = new_name(script, call), [word.value for word in call.keywords]
        if not name or (shown.dataset in words and shown.shuffle in words[: words.index(shown.dataset)]):
            return
    if shown.shuffle is None or is_false(shown.shuffle):
        code, instead, parts = "False", "", [shown.dataset]
    else:
        code, instead, parts = "{}", "shuffle", [shown.dataset, shown.shuffle]
    template = f"{_SAMPLER}({{}}, shuffle={code})"
    yield ChangeArgument(call, "sampler", template, _NAMED, instead, (_SAMPLER,), tuple(parts), name)


def _is_loader(script: Script, node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load) and script.qualified(node) in _LOADERS


def _derived(script: Script, node: ast.AST) -> ast.ClassDef | None:
    """The class that this is a base of, `DataLoader` or `DataLoader[int]`."""
    parent = script.parents[node]
    if isinstance(parent, ast.Subscript) and parent.value is node:
        parent = script.parents[parent]
    return parent if isinstance(parent, ast.ClassDef) else None


def _touched(derived: ast.ClassDef) -> str:
    """What a class uses or defines that torch's loader and that of ddpify_runtime do differently; "" for nothing."""
    for node in ast.walk(derived):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
        if name in _INSIDE:
            return str(name)
    return ""


def _shows_batches(script: Script, call: ast.Call) -> str:
    """The method of a writer that the script itself gives a batch, or makes, on rank 0 alone; "" for any other call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _SHOWS_BATCHES:
        return ""
    alone = any(under_rank_guard(script, each) for each in (call, *origins(script, call.func.value)))
    return call.func.attr if alone and not script.qualified(call.func).startswith("torch") else ""


def _comes_from_elsewhere(script: Script, node: ast.Name) -> bool:
    """Whether no import of this file says what the name is: a star does, or another file of the program."""
    imports = [(at, alias.asname or alias.name) for at in script.find(ast.ImportFrom) for alias in at.names]
    by_star = node.id in script.by_star and node.id not in (name for _, name in imports)
    settled = (name for at, name in imports if script.is_settled(at))
    return node.id not in settled and (by_star or node.id in dict(script.inherited))


def _is_made(script: Script, node: ast.AST) -> bool:
    """Whether a loader is built here: called, handed on, or derived from; not named in a check or an annotation."""
    parent = script.parents[node]
    if isinstance(parent, ast.Call):
        return parent.func is node or script.qualified(parent.func) not in ("isinstance", "issubclass")
    return isinstance(parent, (ast.Assign, ast.keyword, ast.IfExp, ast.Return)) or _derived(script, node) is not None


RULE = Rule(
    id="DDP109",
    title="Load each row once",
    why="""\
Every process draws the same global batches, in the order that the single process would have drawn (D1-D7, D9).
torch's DataLoader would load all of their rows in every process; the one of ddpify_runtime, a subclass, loads those
that this process computes, augmented or not. Batch size, length and order stay as they are. A class that the script
derives from torch's is derived from it instead.
Where a loader is made in sight, the sampler is named of whose order each process takes its rows; one of the script's
own is wrapped. A call that hides it stays (`**options` filled elsewhere, a batch_sampler, an IterableDataset).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    destroy_process_group,
    init_process_group,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
)
