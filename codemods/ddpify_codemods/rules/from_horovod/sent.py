"""DDP644: parameters, states and objects of one rank are sent by torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.horovod import calls_of, free_name, given, horovod_name, is_constant
from ...facts.optimizers import optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Insert, Rule
from ...targets import Target

_MODULES = ("import torch.distributed as dist",)
_MESSAGE = "send what rank 0 has"
_ZEROS = frozenset({"weight_decay", "dampening"})  # with these a step of gradients of zero changes something for SGD


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace Horovod's broadcasts that stand in statements of their own, or give a tensor back."""
    for call in calls_of(script, "broadcast_parameters", "broadcast_optimizer_state", "broadcast_"):
        words, name = given(script, call) or {}, horovod_name(script, call.func)
        root = words.get("root_rank", ast.Constant(0))
        first = words.get(
            {"broadcast_parameters": "params", "broadcast_optimizer_state": "optimizer"}.get(name, "tensor")
        )
        is_statement = isinstance(script.parents[call], ast.Expr)
        if first is None or "process_set" in words:
            yield _refused(call, "for some of the processes, or with arguments that cannot be seen")
        elif not is_statement:
            yield _refused(call, "as a value")
        elif name == "broadcast_":
            code = f"dist.broadcast({ast.unparse(first)}, {ast.unparse(root)})"
            yield from _instead(script, call, code)
        elif name == "broadcast_parameters":
            yield from _parameters(script, call, first, root)
        else:
            yield from _state(script, call, first, root)


def _refused(call: ast.Call, what: str) -> Finding:
    message = f"`{ast.unparse(call.func)}` {what}: torch has no form of it"
    return Finding(RULE.id, "refused", call.lineno, message, "write it as Horovod's examples do, on a line of its own")


def _instead(script: Script, call: ast.Call, code: str) -> Iterator[Edit]:
    yield Insert(script.statement(call), code, _MESSAGE, "before", modules=_MODULES)
    yield Delete(script.statement(call), "")


def _parameters(script: Script, call: ast.Call, params: ast.expr, root: ast.expr) -> Iterator[Edit | Finding]:
    func = params.func if isinstance(params, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "state_dict":
        yield _refused(call, "of something else than a state_dict()")
        return
    name = free_name(script, "tensor")
    code = f"for {name} in {ast.unparse(params)}.values():\n    dist.broadcast({name}, {ast.unparse(root)})"
    yield from _instead(script, call, code)


def _state(script: Script, call: ast.Call, optimizer: ast.expr, root: ast.expr) -> Iterator[Edit | Finding]:
    """An optimizer's state; a new one has none, and Horovod takes a step with gradients of zero to make it."""
    code = ast.unparse(optimizer)
    loads = any(
        isinstance(each.func, ast.Attribute)
        and each.func.attr == "load_state_dict"
        and ast.unparse(each.func.value) == code
        for each in script.find(ast.Call)
    )
    made = _made(script, optimizer)
    if not made or any(_is_changed_by_zeros(script, each) for each in made):
        message = "hvd.broadcast_optimizer_state takes a step with gradients of zero where it is new: that is left out"
        remedy = "none, if a run that decays no weights and counts no step before the first one is meant"
        yield Finding(RULE.id, "warning", made[0].lineno if made else 1, f"this optimizer: {message}", remedy)
    if loads:
        name = free_name(script, "optimizer_state")
        lines = f"{name} = [{code}.state_dict()]\ndist.broadcast_object_list({name}, {ast.unparse(root)})"
        yield from _instead(script, call, f"{lines}\n{code}.load_state_dict({name}[0])")
    else:
        yield Delete(script.statement(call), "the state of a new optimizer is the same on each rank")


def _made(script: Script, optimizer: ast.expr) -> list[ast.Call]:
    """The calls that make an optimizer, which Horovod may have wrapped."""
    made = set(origins(script, optimizer))
    for call in calls_of(script, "DistributedOptimizer"):
        wrapped = (given(script, call) or {}).get("optimizer")
        made.update(origins(script, wrapped) if call in made and wrapped is not None else ())
    calls = (each.call for each in optimizers(script) if each.call in made)
    return [each for each in calls if isinstance(each, ast.Call) and not horovod_name(script, each.func)]


def _is_changed_by_zeros(script: Script, call: ast.Call) -> bool:
    """Whether a step with gradients of zero may change parameters, or the steps after it: for all but plain SGD."""
    words = {word.arg: word.value for word in call.keywords}
    plain = script.qualified(call.func) in ("torch.optim.SGD", "torch.optim.sgd.SGD") and len(call.args) <= 3
    return not plain or None in words or not all(is_constant(words.get(name), 0, 0.0) for name in _ZEROS)


RULE = Rule(
    id="DDP644",
    title="Send parameters with torch's broadcast",
    why="""\
Each tensor of a state_dict is sent to the other ranks, as Horovod does, in place. The state of an optimizer that
loads one is sent as an object; that of a new one is left alone. There Horovod takes a step with gradients of zero, to
have a state to send: that decays weights, and counts for Adam. It is left out, and told where it changed something.""",
    before="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
if hvd.rank() == 0:
    state = torch.load("checkpoint.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
ddp_model = DistributedDataParallel(model, broadcast_buffers=False)
if dist.get_rank() == 0:
    state = torch.load("checkpoint.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
for tensor in model.state_dict().values():
    dist.broadcast(tensor, 0)
optimizer_state = [optimizer.state_dict()]
dist.broadcast_object_list(optimizer_state, 0)
optimizer.load_state_dict(optimizer_state[0])
for _ in range(10):
    optimizer.zero_grad()
    ddp_model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
