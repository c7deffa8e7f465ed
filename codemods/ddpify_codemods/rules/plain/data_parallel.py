"""DDP613: nn.DataParallel goes, and with it the `.module` that it made of the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.data_parallel import (
    CLASSES,
    called_in_parallel,
    module_of,
    needs_it,
    serves_it_alone,
    with_inputs,
)
from ...facts.eager import is_move
from ...facts.flow.frames import FlowFacts
from ...facts.flow.program import Program
from ...facts.own_data_parallel import called_as, mentions, own_classes
from ...facts.parallel_names import sees_wrapper
from ...facts.script import Script
from ...rule import Delete, DropImport, Edit, Finding, Replace, Rule, Unguard
from ...targets import Target
from .words import REMEDY, is_here, program_of

_MESSAGE = "leave the GPUs to DistributedDataParallel"
_ALONE = "it does nothing without nn.DataParallel"
_ASKED = "this needs an nn.DataParallel, which is left out: a rank has one GPU"
_SEEN = "this sees that the model is inside nn.DataParallel, which is left out: by `module.` in names, or by its place"
_SUBCLASS = "this class is derived from nn.DataParallel: the model of each rank would be spread over all GPUs"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the model instead of what nn.DataParallel makes of it."""
    wrapped: set[str] = set()
    found = program_of(script).followed.found
    idle = _idle_calls(program_of(script))
    for call in script.find(ast.Call):
        if called := called_in_parallel(script, call):
            template, parts = with_inputs(script, *called)
            yield Replace(call, template, _MESSAGE, parts=parts)
        module = module_of(call) if script.qualified(call.func) in CLASSES else None
        if module is None:
            continue
        parent = script.parents[call]
        if isinstance(parent, ast.Assign):
            wrapped.update(map(ast.unparse, parent.targets))
        if isinstance(parent, ast.Assign) and [*map(ast.unparse, parent.targets)] == [ast.unparse(module)]:
            yield _without(script, parent, idle)
        else:
            yield Replace(call, "{}", _MESSAGE, parts=(module,), bare=True)
    yield from _imports(script)
    yield from (Delete(script.statement(call), _ALONE) for call in idle if call in script.parents)
    yield from _asked(script, found, idle)
    for node in script.find(ast.Attribute):
        named = node.attr == "module" and isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in wrapped
        if named or _is_among(script, found.out_of_parallel, node):
            yield Replace(node, "{}", "the model is not wrapped here", parts=(node.value,), bare=True)
    yield from _checkpoints(script, found)
    if target.is_accelerator:
        yield from _moved_inputs(script, found, target)


def _idle_calls(program: Program) -> dict[ast.Call, ast.AST]:
    """The calls of functions that only see to an nn.DataParallel, and these functions."""
    found = program.followed.found
    idle: dict[ast.Call, ast.AST] = {}
    for node, script in found.parallel_asked.items():
        function = script.scope(node)
        calls = found.called_with.get(function, set())
        alone = all(isinstance(there.parents[call], ast.Expr) and _only_names(call) for call, there in calls)
        if alone and isinstance(function, ast.FunctionDef) and serves_it_alone(script, function):
            idle.update((call, function) for call, _ in calls)
    return idle


def _only_names(call: ast.Call) -> bool:
    """Whether making what a call gives does nothing by itself."""
    parts = (part for each in (*call.args, *(word.value for word in call.keywords)) for part in ast.walk(each))
    return all(isinstance(part, ast.Name | ast.Attribute | ast.expr_context) for part in parts)


def _asked(script: Script, found: FlowFacts, idle: dict[ast.Call, ast.AST]) -> Iterator[Finding]:
    """Refuse what would be an error without nn.DataParallel, or one that the script itself defines."""
    for node, there in found.parallel_asked.items():
        if is_here(script, there) and needs_it(script, node) and script.scope(node) not in idle.values():
            remedy = "ask for it before: `if isinstance(model, nn.DataParallel):`"
            yield Finding(RULE.id, "refused", script.statement(node).lineno, _ASKED, remedy)
    for part, there in found.parallel_parts.items():
        if is_here(script, there) and isinstance(part, ast.Call | ast.Attribute) and sees_wrapper(script, part):
            remedy = "ask `.module` of it, whose names do not begin with `module.`"
            yield Finding(RULE.id, "refused", part.lineno, _SEEN, remedy)
    for named in mentions(script, own_classes(program_of(script).scripts)):
        call, around = called_as(script, named), script.scope(named)
        run = call in found.visits if call else around is script.tree or around in found.called_with
        if run:
            remedy = f"take nn.DataParallel itself, or {REMEDY}"
            yield Finding(RULE.id, "refused", script.statement(named).lineno, _SUBCLASS, remedy)


def _imports(script: Script) -> Iterator[Edit]:
    """Take out `from torch.nn import DataParallel`, where it is only called with a model.

    The import of what serves it alone stays: the file may hand that name on, and the other one do something else.
    """
    names = [*script.find(ast.Name)]
    for statement in script.find(ast.ImportFrom):
        for alias in statement.names:
            uses = [each for each in names if each.id == (alias.asname or alias.name)]
            calls = [script.parents[each] for each in uses]
            goes = (isinstance(call, ast.Call) and call.func in uses and module_of(call) is not None for call in calls)
            only_called = f"{statement.module}.{alias.name}" in CLASSES and all(goes)
            if uses and only_called:
                alone = len(statement.names) == 1
                yield Delete(statement, _MESSAGE) if alone else DropImport(statement, alias.name, _MESSAGE)


def _checkpoints(script: Script, found: FlowFacts) -> Iterator[Finding]:
    """Say what checkpoints of the original know of nn.DataParallel."""
    for call, (there, own) in found.parallel_keys.items():
        if is_here(script, there):
            keys = "begin with `module.`" if own else "have `module.` in them"
            message = f"the keys of this state_dict {keys} in the original, and do not here"
            remedy = "checkpoints of the original need their keys shortened"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)
    for call, there in found.parallel_pickles.items():
        if is_here(script, there):
            message = "the original pickles the whole nn.DataParallel here, which is the model alone now"
            remedy = "of what a checkpoint of the original holds, take `.module`"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _is_among(script: Script, found: dict[ast.AST, Script], node: ast.AST) -> bool:
    """Whether a node is among those that were found in a file."""
    return node in found and is_here(script, found[node])


def _without(script: Script, wraps: ast.Assign, idle: dict[ast.Call, ast.AST]) -> Delete | Unguard:
    """Leave out a statement; with the condition for which there would be nothing left to do."""
    around = script.parents[wraps]
    if not isinstance(around, ast.If) or wraps not in around.body or _is_elif(script, around):
        return Delete(wraps, _MESSAGE)
    several = _asks_for_several(script, around.test)  # of which a process has one
    gone = {wraps, *(script.statement(call) for call in idle if call in script.parents)}
    others = [each for each in around.body if each not in gone and not (several and _only_says(script, each))]
    if others or (not several and (around.orelse or not _only_looks(around.test))):
        return Delete(wraps, _MESSAGE)
    return Unguard(around, _MESSAGE, "orelse") if around.orelse else Delete(around, _MESSAGE)


def _is_elif(script: Script, node: ast.If) -> bool:
    above = script.parents[node]
    return isinstance(above, ast.If) and node in above.orelse


def _only_looks(test: ast.expr) -> bool:
    """Whether a condition calls nothing: `args.gpus > 1`."""
    kinds = ast.Name | ast.Attribute | ast.Constant | ast.Compare | ast.BoolOp | ast.UnaryOp
    return all(
        isinstance(node, kinds | ast.expr_context | ast.cmpop | ast.boolop | ast.unaryop) for node in ast.walk(test)
    )


def _asks_for_several(script: Script, test: ast.expr) -> bool:
    """Whether it is `torch.cuda.device_count() > 1`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Call):
        return False
    bound = test.comparators[0].value if isinstance(test.comparators[0], ast.Constant) else None
    counts = script.qualified(test.left.func) == "torch.cuda.device_count"
    return counts and (type(test.ops[0]), bound) in ((ast.Gt, 1), (ast.GtE, 2))


def _only_says(script: Script, node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and script.qualified(call.func) == "print"


def _moved_inputs(script: Script, found: FlowFacts, target: Target) -> Iterator[Replace]:
    """Move batches to the device that nn.DataParallel has moved, where the model alone is called."""
    for call, there in found.parallel_calls.items():
        if not is_here(script, there) or call in found.training_forwards:
            continue
        for given in (*call.args, *(word.value for word in call.keywords)):
            if _is_on_host(script, given, found):
                device = target.words.device or f'"{target.device_type}"'
                yield Replace(given, f"{{}}.to({device})", "move what nn.DataParallel has moved", bare=False)


def _is_on_host(script: Script, node: ast.expr, found: FlowFacts, depth: int = 4) -> bool:
    """Whether something comes from a loader as it is: `for x, y in loader: model(Variable(x))`."""
    if any(is_move(each) for each in ast.walk(node)):
        return False
    if isinstance(node, ast.Call) and script.qualified(node.func) == "torch.autograd.Variable" and node.args:
        return _is_on_host(script, node.args[0], found, depth)
    if not isinstance(node, ast.Name) or depth == 0:
        return False
    loops = [each for each in script.ancestors(node) if each in found.loops and isinstance(each, ast.For)]
    if not loops:
        return False
    values = []
    for each in (one for one in ast.walk(loops[0]) if isinstance(one, ast.Name) and one.id == node.id):
        statement = script.statement(each)
        if isinstance(each.ctx, ast.Load) or statement is loops[0] or statement.lineno >= script.statement(node).lineno:
            continue
        alone = isinstance(statement, ast.Assign) and statement.targets == [each]
        values.append(alone and _is_on_host(script, statement.value, found, depth - 1))  # type: ignore[attr-defined]
    given = any(isinstance(each, ast.Name) and each.id == node.id for each in ast.walk(loops[0].target))
    return all(values) and (given or bool(values))


RULE = Rule(
    id="DDP613",
    title="Leave out nn.DataParallel",
    why="""\
With one process for each device DistributedDataParallel does what nn.DataParallel did (P4). The model keeps its name
and its own keys: those that nn.DataParallel had put `module.` before lose it (I7).
What serves nn.DataParallel alone goes with it; what cannot do without it, or sees it by names, is refused.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.DataParallel(torch.nn.Linear(4, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.module.state_dict(), "model.pt")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1).cuda()
ddp_model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
""",
    check=check,
)
