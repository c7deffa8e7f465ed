"""DDP615: where gradients accumulate, they are averaged once, in the backward pass before the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import called_model
from ...facts.flow.wrapping import wrapping
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import is_here, program_of

_READS = ("clip_grad", "unscale_", "scale_loss", "zero_grad")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let the wrapper average gradients in the last of the backward passes that a step is made of."""
    if target.words.averaging:
        return
    program = program_of(script)
    if program.fully_sharded:
        return  # each pass adds to this rank's part
    found = program.followed.found
    calls = wrapping(program).calls
    done: set[ast.For] = set()
    for forward in sorted(found.training_forwards & set(found.forwards), key=lambda call: call.lineno):
        loop = next((each for each in script.ancestors(forward) if isinstance(each, ast.For)), None)
        if not is_here(script, found.forwards[forward][0]) or loop is None or loop in done or loop not in found.loops:
            continue
        done.add(loop)
        at = next(each for each in loop.body if each is script.statement(forward) or _holds(each, forward))
        test = _condition(script, loop, at, set(found.backwards))
        if test is not None and at in loop.body:
            for name in _wrappers(script, loop, found.training_forwards, calls):
                code = f"{name}.require_backward_grad_sync = {ast.unparse(test)}"
                yield Insert(at, code, "average gradients once for each step, as no_sync() does")


def _wrappers(
    script: Script, loop: ast.For, forwards: set[ast.Call], calls: dict[ast.expr, tuple[Script, str]]
) -> list[str]:
    """What a loop calls in training."""
    inside = [node for node in ast.walk(loop) if isinstance(node, ast.Call) and node in forwards]
    inside.sort(key=lambda call: (call.lineno, call.col_offset))
    models = [called_model(call) for call in inside]
    return [*dict.fromkeys(calls[each][1] if each in calls else ast.unparse(each) for each in models)]


def _condition(script: Script, loop: ast.For, at: ast.stmt, backwards: set[ast.Call]) -> ast.expr | None:
    """The condition of the step in a loop that makes a backward pass each time, where it is known before the forward.

    Args: the file; the loop, and its statement that has the forward; all backward passes. None where it is not clear.
    """
    steps = [each for each in loop.body if isinstance(each, ast.If) and _steps(each) and not each.orelse]
    passes = [each for each in loop.body if isinstance(each, ast.Expr) and each.value in backwards]
    if len(steps) != 1 or len(passes) != 1 or loop.body.index(passes[0]) > loop.body.index(steps[0]):
        return None
    others = [each for each in loop.body if each is not steps[0]]
    if any(_steps(each) or _reads_gradients(each) for each in others):
        return None
    if _needs_averages_behind(script, loop, steps[0]):
        return None
    test = steps[0].test
    counted = {each.target for each in loop.body[: loop.body.index(at)] if _counts(each)}  # type: ignore[attr-defined]
    stored = (node for each in loop.body for node in ast.walk(each) if _is_stored(node) and node not in counted)
    taken = {node.id for node in stored}  # type: ignore[attr-defined]
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and script.qualified(node.func) != "len"]
    return None if named & taken or calls or not named else test


def _holds(statement: ast.stmt, call: ast.Call) -> bool:
    return any(node is call for node in ast.walk(statement))


def _counts(statement: ast.stmt) -> bool:
    """Whether it is `steps += 1`, alike on all ranks; a number of samples is not."""
    by = statement.value if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) else None
    return isinstance(by, ast.Constant) and isinstance(statement.target, ast.Name)  # type: ignore[attr-defined]


def _needs_averages_behind(script: Script, loop: ast.For, step: ast.If) -> bool:
    """Whether the function of a loop takes the step once more behind it, or looks at gradients: those that are left
    would not be averaged."""
    inside = {*ast.walk(loop)}
    calls = {ast.unparse(each.func) for each in ast.walk(step) if isinstance(each, ast.Call)}
    taken = {each for each in calls if each.rpartition(".")[2] == "step"}
    beside = [each for each in ast.walk(script.scope(loop)) if each not in inside]
    again = any(isinstance(each, ast.Call) and ast.unparse(each.func) in taken for each in beside)
    names = [each.attr for each in beside if isinstance(each, ast.Attribute)]
    return again or any(name == "grad" or name.startswith(_READS[:3]) for name in names)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _steps(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "step" for node in ast.walk(statement))


def _reads_gradients(statement: ast.stmt) -> bool:
    attributes = [node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)]
    return any(name == "grad" or name.startswith(_READS) for name in attributes)


RULE = Rule(
    id="DDP615",
    title="Average accumulated gradients once",
    why="""\
DistributedDataParallel averages gradients in each backward pass. Where a step is made of several, all but the last can
go without (L7): what they leave is added to, and averaged with, the last. The attribute is the one that no_sync()
sets.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
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
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    ddp_model.require_backward_grad_sync = (i + 1) % 4 == 0
    loss = torch.nn.functional.mse_loss(ddp_model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
