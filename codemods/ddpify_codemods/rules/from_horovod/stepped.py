"""DDP643: gradients are averaged when the backward pass is over; nothing waits for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.horovod import calls_of, given, is_constant, is_wrapped_optimizer
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_WAITS = ("synchronize", "set_backward_passes_per_step")
_CLIPS = frozenset(
    {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm"}
)
_AVERAGED = "gradients are averaged by the backward pass"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Leave out synchronize and skip_synchronize, and say what Horovod did otherwise."""
    waits = False
    for call in script.find(ast.Call):
        func = call.func
        if not isinstance(func, ast.Attribute) or not is_wrapped_optimizer(script, func.value):
            continue
        if func.attr in _WAITS and isinstance(script.parents[call], ast.Expr):
            waits = waits or func.attr == "synchronize"
            yield Delete(script.statement(call), _AVERAGED)
        elif func.attr == "skip_synchronize":
            yield from _without_with(script, call)
        elif func.attr in _WAITS:
            message = f"`{ast.unparse(call)}` is used as a value"
            yield Finding(RULE.id, "refused", call.lineno, message, "call it in a statement of its own")
    wrapped = list(calls_of(script, "DistributedOptimizer"))
    if wrapped and not waits:
        yield from _not_waited(script)
    for call in wrapped:
        passes = (given(script, call) or {}).get("backward_passes_per_step")
        backwards = [node for node in script.find(ast.Attribute) if node.attr == "backward"]
        if not is_constant(passes, 1) and backwards:
            message = "each of the backward passes for a step averages now, which gives the same sum, later"
            remedy = "put those before the last one below the wrapper's `no_sync()`, with their forwards"
            yield Finding(RULE.id, "note", backwards[0].lineno, message, remedy)


def _without_with(script: Script, call: ast.Call) -> Iterator[Edit]:
    """Take what is below `with optimizer.skip_synchronize():` out of it."""
    statement = script.statement(call)
    block = script.block(statement)
    place = block.index(statement)
    alone = isinstance(statement, ast.With) and len(statement.items) == 1
    if place and alone and isinstance(block[place - 1], ast.Expr) and all(_is_simple(each) for each in statement.body):  # type: ignore[attr-defined]
        code = "\n".join(ast.get_source_segment(script.text, each) or "" for each in statement.body)  # type: ignore[attr-defined]
        yield Insert(block[place - 1], code, _AVERAGED, "after")
        yield Delete(statement, "")
    else:
        yield Replace(call, "contextlib.nullcontext()", _AVERAGED, modules=("import contextlib",))


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and statement.lineno == statement.end_lineno


def _not_waited(script: Script) -> Iterator[Finding]:
    """Horovod averages in the background from the backward pass on; what looked at gradients saw them on the way."""
    for call in script.find(ast.Call):
        scales = isinstance(call.func, ast.Attribute) and call.func.attr == "unscale_"
        if scales or script.qualified(call.func) in _CLIPS:
            message = "Horovod had not averaged the gradients that are looked at here; now they are averaged"
            yield Finding(RULE.id, "warning", call.lineno, message, "none, if the averages were meant")


RULE = Rule(
    id="DDP643",
    title="Step without waiting for Horovod",
    why="""\
With Horovod, what looks at gradients before the step (clipping, GradScaler) calls `optimizer.synchronize()` first, and
steps below `optimizer.skip_synchronize()`. DistributedDataParallel has averaged them when the backward pass ends (L9).
A script that clips without waiting clipped what was not averaged, or only in part; it is told.""",
    before="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), op=hvd.Average)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with optimizer.skip_synchronize():
        optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp_model = DistributedDataParallel(model, broadcast_buffers=False)
for _ in range(10):
    optimizer.zero_grad()
    ddp_model(torch.rand(8, 4)).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
    check=check,
    target="cpu",
)
