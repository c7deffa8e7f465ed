"""DDP642: DistributedDataParallel averages the gradients, not a wrapped optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.header import main_guard
from ...facts.horovod import calls_of, free_name, given, horovod_name
from ...facts.horovod_optimizer import asks_for_adasum, difference, trained_model
from ...facts.model_calls import binder_of, model_calls
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_CLASS = "from torch.nn.parallel import DistributedDataParallel"
_HOOKS = "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"
_COMPRESSIONS = {"Compression.fp16": "default_hooks.fp16_compress_hook", "Compression.none": "None"}
_REMEDY = "write `optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())`"
_AROUND = (ast.With, ast.Try)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap the model where Horovod wraps its optimizer, and call the wrapper."""
    for node in script.find(ast.Attribute):
        if horovod_name(script, node) in _COMPRESSIONS:
            name = horovod_name(script, node)
            modules = (_HOOKS,) if name == "Compression.fp16" else ()
            yield Replace(node, _COMPRESSIONS[name], "compress gradients as torch does", modules=modules)
    calls = list(calls_of(script, "DistributedOptimizer"))
    if len(calls) > 1:
        message = "several optimizers are wrapped: which backward pass is for which of them cannot be told"
        yield _refused(calls[1], message, "let one optimizer have all parameters, in groups")
    elif calls:
        yield from _wrapped(script, calls[0])


def _refused(node: ast.AST, message: str, remedy: str = _REMEDY) -> Finding:
    return Finding(RULE.id, "refused", getattr(node, "lineno", 1), message, remedy)


def _wrapped(script: Script, call: ast.Call) -> Iterator[Edit | Finding]:
    words, at = given(script, call), script.statement(call)
    problem = "its arguments cannot be seen" if words is None else difference(script, words)
    if problem:
        yield _refused(call, f"hvd.DistributedOptimizer: {problem}", "take that out: torch has no form of it")
        return
    assert words is not None
    optimizer = words["optimizer"]
    is_assigned = isinstance(at, ast.Assign) and at.value is call and len(at.targets) == 1
    model = trained_model(script, words.get("named_parameters"), optimizer)
    if not is_assigned or model is None or not _is_reached(script, at, model):
        yield _refused(call, "which model is trained by this optimizer cannot be seen here")
        return
    assert isinstance(at, ast.Assign)
    found = model_calls(script, model, at)
    for node, reason in found.problems:
        yield _refused(node, reason, "let training call the model by the name whose parameters the optimizer is given")
    if not found.wrapped and not found.problems:
        yield _refused(call, f"no call of `{ast.unparse(model)}` is seen that trains it")
    if not found.wrapped or found.problems:
        return
    name = _name(script, ast.unparse(model))
    for node in found.wrapped:
        yield Replace(node, name, "call the wrapped model in training")
    for node in found.modules:
        yield Replace(node, "{}.module", "take the model out of its wrapper")
    code, modules = _code(script, words, ast.unparse(model), name)
    message = f"average gradients in {name}"
    same = ast.unparse(at.targets[0]) == ast.unparse(optimizer)
    yield Insert(at, code, message, "before" if same else "after", modules=(_CLASS, *modules))
    yield Delete(at, message) if same else Replace(call, "{}", message, parts=(optimizer,), bare=True)


def _is_reached(script: Script, at: ast.stmt, model: ast.expr) -> bool:
    """Whether a statement is run whenever its function is, and the wrapper is seen where the model is."""
    guard = main_guard(script.tree)
    for parent in script.ancestors(at):
        if parent is script.scope(at):
            break
        if parent is not guard and not isinstance(parent, _AROUND):
            return False
    return isinstance(model, ast.Attribute) or binder_of(script, model) is script.scope(at)  # type: ignore[arg-type]


def _code(script: Script, words: dict[str, ast.expr], model: str, name: str) -> tuple[str, tuple[str, ...]]:
    """The statements that wrap the model, and what they import."""
    lines, operation = [f"{name} = DistributedDataParallel({model}, broadcast_buffers=False)"], words.get("op")
    test = None if operation is None else asks_for_adasum(script, operation)
    if test is not None:
        lines = [f"if {ast.unparse(test)}:", '    raise SystemExit("Adasum is Horovod\'s own: torch has none")', *lines]
    compression = words.get("compression")
    kind = "" if compression is None else horovod_name(script, compression)
    if kind == "Compression.fp16":
        return "\n".join([*lines, f"{name}.register_comm_hook(None, default_hooks.fp16_compress_hook)"]), (_HOOKS,)
    if compression is None or kind == "Compression.none":
        return "\n".join(lines), ()
    asked = _replaced(script, compression)
    return "\n".join([*lines, f"if {asked} is not None:", f"    {name}.register_comm_hook(None, {asked})"]), ()


def _replaced(script: Script, node: ast.expr) -> str:
    code = ast.unparse(node)
    for part in ast.walk(node):
        if horovod_name(script, part) in _COMPRESSIONS:
            code = code.replace(ast.unparse(part), _COMPRESSIONS[horovod_name(script, part)])
    return f"({code})" if isinstance(node, ast.IfExp) else code


def _name(script: Script, model: str) -> str:
    owner, dot, last = model.rpartition(".")
    return f"{owner}{dot}{free_name(script, f'ddp_{last}')}"


RULE = Rule(
    id="DDP642",
    title="Wrap the model instead of the optimizer",
    why="""\
Horovod's optimizer averages the gradients of the ranks before its step, and the model stays what it is.
DistributedDataParallel averages them in the backward pass, if the forward was its own. So each call of the model
outside of torch.no_grad() becomes one of the wrapper; its name, its parameters, its checkpoints stay. Where a call
would go past the wrapper the script is refused (M3). Each rank keeps its own buffers, as with Horovod (M8).
`gradient_predivide_factor` and groups change how gradients travel, not what they are, and go; several backward passes
for a step are added up by both. Adasum and sums are not averages: they are refused, or where an option asks for Adasum
the run ends. Horovod gives parameters that a batch does not use gradients of zero; DistributedDataParallel stops with
an error that says what to do.""",
    before="""\
import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.fp16
)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
with torch.no_grad():
    print(model(torch.rand(8, 4)).mean())
""",
    after="""\
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
torch.manual_seed(dist.get_rank())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for tensor in model.state_dict().values():
    dist.broadcast(tensor, 0)
ddp_model = DistributedDataParallel(model, broadcast_buffers=False)
ddp_model.register_comm_hook(None, default_hooks.fp16_compress_hook)
for _ in range(10):
    optimizer.zero_grad()
    ddp_model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
with torch.no_grad():
    print(model(torch.rand(8, 4)).mean())
""",
    check=check,
    target="cpu",
)
