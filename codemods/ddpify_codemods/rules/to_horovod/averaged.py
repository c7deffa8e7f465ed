"""DDP652: hvd.DistributedOptimizer averages gradients, in place of DistributedDataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.eager import is_wrapped, is_wrapper_call
from ...facts.following_step import following_steps
from ...facts.optimizers import Optimizer, optimizers
from ...facts.same_model import is_same_model
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ...waits import stepped_once, zeroed

_MESSAGE = "average gradients in the optimizer"
_REMEDY = "write one model, one optimizer of its parameters in a line of its own, and one backward pass for each step"
# How gradients travel, and where: not what they are.
_DROPPED = frozenset(
    {"device_ids", "output_device", "dim", "broadcast_buffers", "forward_sync_buffers", "bucket_cap_mb"}
    | {"gradient_as_bucket_view", "static_graph", "check_reduction"}
)
_OF_WRAPPER = frozenset({"no_sync", "register_comm_hook", "join", "require_backward_grad_sync", "reducer"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the wrapper out, wrap the optimizer, and wait for the averages where gradients are looked at."""
    wrappers = [call for call in script.find(ast.Call) if is_wrapper_call(script, call)]
    made = list(optimizers(script))
    backwards = [call for call in script.find(ast.Call) if _last(call) == "backward"]
    if not (wrappers or made or backwards):
        return
    problem = _problem(script, wrappers, made)
    if problem:
        line = [*wrappers, *(each.call for each in made), *backwards][0].lineno
        yield Finding(RULE.id, "refused", line, problem, _REMEDY)
        return
    call, optimizer = wrappers[0], made[0].call
    assert isinstance(optimizer, ast.Call)
    model, wraps, makes = _module(call), script.parents[call], script.parents[optimizer]
    assert isinstance(wraps, ast.Assign) and isinstance(makes, ast.Assign) and model is not None
    yield from _unwrapped(script, call, model, wraps, target)
    yield from _own_statistics(script, call, ast.unparse(wraps.targets[0]))
    name, named = ast.unparse(makes.targets[0]), made[0].bases[0].code.removesuffix(".module")
    code = f"{name} = {target.words.averaging.format(model=named).format(name)}"
    yield Insert(makes, code, _MESSAGE, "after", modules=target.words.imports)
    yield from _modules(script)
    steps = {step.optimizer for each in backwards for step in following_steps(script, each, {optimizer})[2]}
    yield from zeroed(script, {optimizer}, steps, RULE.id, _REMEDY)
    for backward in backwards:
        yield from stepped_once(script, backward, {optimizer}, RULE.id, _REMEDY)


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _module(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == "module"), None)


def _problem(script: Script, wrappers: list[ast.Call], made: list[Optimizer]) -> str:
    """Why gradients cannot be averaged in one optimizer; "" where they can."""
    others = [each for each in (script.program.scripts if script.program else ()) if each.path != script.path]
    if any(_last(call) == "backward" or is_wrapper_call(each, call) for each in others for call in each.find(ast.Call)):
        return "the model is wrapped and trained in several files"
    if len(wrappers) != 1 or len(made) != 1 or not isinstance(made[0].call, ast.Call):
        return f"{len(wrappers)} models are wrapped and {len(made)} optimizers made: Horovod averages in one optimizer"
    call, optimizer = wrappers[0], made[0].call
    wraps, makes, model = script.parents[call], script.parents[optimizer], _module(call)
    if not all(isinstance(each, ast.Assign) and len(each.targets) == 1 for each in (wraps, makes)) or model is None:
        return "the wrapper or the optimizer is not assigned in a line of its own"
    words = {word.arg: word.value for word in call.keywords}
    unused = words.pop("find_unused_parameters", ast.Constant(False))
    if ast.unparse(unused) != "False":
        return "parameters that a batch does not use: Horovod gives them gradients of zero, where they had none"
    if len(call.args) > 5 or set(words) - _DROPPED - {"module"}:
        return "this form of DistributedDataParallel is torch's own"
    assert isinstance(wraps, ast.Assign)
    bases = [base.node for base in made[0].bases]
    if len(bases) != 1 or not is_same_model(script, bases[0], model, ast.unparse(wraps.targets[0])):
        return "the parameters of the optimizer are not seen to be those of the wrapped model"
    return _otherwise(script, optimizer)


def _otherwise(script: Script, optimizer: ast.Call) -> str:
    """What Horovod's optimizer does otherwise than the one in it, or what only the wrapper has."""
    name = script.qualified(optimizer.func).rpartition(".")[2]
    if name in ("LBFGS", "Adagrad", "SparseAdam"):
        return f"Horovod makes {name} again without what it was given, or steps it otherwise"
    for node in script.find(ast.Attribute):
        if node.attr in _OF_WRAPPER and is_wrapped(script, node.value):
            return f"`{ast.unparse(node)}` is of DistributedDataParallel alone"
        if node.attr == "module" and isinstance(node.ctx, ast.Store):
            return "this may be a wrapper's `module`, or one that the model has itself"
        if script.qualified(node).startswith("torch.nn.SyncBatchNorm"):
            return "Horovod's SyncBatchNorm is for GPUs alone"
        if node.attr == "add_param_group":
            return "Horovod does not average the gradients of parameters that are added later"
    return ""


def _unwrapped(script: Script, call: ast.Call, model: ast.expr, wraps: ast.Assign, target: Target) -> Iterator[Edit]:
    """The model of rank 0 for all, where the wrapper had sent it."""
    name, same = ast.unparse(wraps.targets[0]), ast.unparse(wraps.targets[0]) == ast.unparse(model)
    words, message = target.words, "begin with the parameters of rank 0"
    yield Insert(wraps, words.parameters.format(name), message, "before" if same else "after", modules=words.imports)
    yield Delete(wraps, "") if same else Replace(call, "{}", "no wrapper", parts=(model,), bare=True)


def _own_statistics(script: Script, wrapper: ast.Call, name: str) -> Iterator[Finding]:
    """Say that nobody sends the statistics of BatchNorm any more, where the script evaluates."""
    kept = any(word.arg == "broadcast_buffers" and ast.unparse(word.value) == "False" for word in wrapper.keywords)
    layers = [each for each in script.find(ast.Call) if script.qualified(each.func).startswith("torch.nn.BatchNorm")]
    if layers and not kept and any(node.attr == "eval" for node in script.find(ast.Attribute)):
        message = (
            "the wrapper sent rank 0's statistics of BatchNorm before each forward; now each rank evaluates its own"
        )
        remedy = f"before an evaluation: hvd.broadcast_parameters(dict({name}.named_buffers()), root_rank=0)"
        yield Finding(RULE.id, "warning", layers[0].lineno, message, remedy)


def _modules(script: Script) -> Iterator[Edit | Finding]:
    for node in script.find(ast.Attribute):
        if node.attr != "module" or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node.value, ast.Name | ast.Attribute):
            yield Replace(node, "{}", "there is no wrapper", parts=(node.value,), bare=True)
        else:
            message, remedy = (
                "this may be a wrapper's `module`, or one that the model has itself",
                "give it a name first",
            )
            yield Finding(RULE.id, "refused", node.lineno, message, remedy)


RULE = Rule(
    id="DDP652",
    title="Let Horovod's optimizer average gradients",
    why="""\
hvd.DistributedOptimizer averages the gradients of the ranks before its step, so the wrapper goes, and `.module` with
it; rank 0's model is sent where the wrapper had sent it. What looks at gradients before the step waits for the averages
(L9). Several backward passes for a step, several models or optimizers, and parameters that a batch does not use are
refused: Horovod would stop, or train them otherwise. Each rank keeps its own buffers: an evaluation of BatchNorm on
another rank than 0 sees its own statistics, which is said (M9).""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
model = torch.nn.Linear(4, 1)
model = DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
""",
    after="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with optimizer.skip_synchronize():
        optimizer.step()
if hvd.rank() == 0:
    torch.save(model.state_dict(), "model.pt")
""",
    check=check,
    target="horovod",
)
