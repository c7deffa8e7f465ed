"""DDP128: with --strategy fsdp2 each process keeps a part of the model (torch's fully_shard)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.fully_sharded import BY_NUMBER, blocks
from ...facts.optimizers import Optimizer, optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...facts.sharded_model import strange_uses
from ...facts.trained_modules import Base
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .model import place

_OPTION = "fully-sharded"
_REMEDY = "leave it out, or convert without --strategy fsdp2"
# What needs whole parameters or their gradients, by how its name begins.
_NOT_DIVIDED = {
    "torch.compile": "a compiled forward does not put the parameters together",
    "torch.jit.": "TorchScript does not put the parameters together",
    "torch.func.": "torch.func computes with whole parameters",
    "torch.autograd.grad": "gradients are given to their processes by backward() alone",
    "torch.autograd.functional.": "gradients are given to their processes by backward() alone",
    "torch.cuda.amp.GradScaler": "a process could skip a step alone; use bfloat16, which needs no GradScaler",
    "torch.amp.GradScaler": "a process could skip a step alone; use bfloat16, which needs no GradScaler",
    "torch.amp.grad_scaler.GradScaler": "a process could skip a step alone; use bfloat16, which needs no GradScaler",
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert one fully_shard line for the model, and one for each list of layers that its forward goes through."""
    if not target.shards_models:
        return
    if _OPTION not in target.options:
        what = f"fully_shard is not for the {target.name} target"
        yield _refused(1, what, "ddpify --target none goes back to one device")
        return
    if script.view and script.view.divides:
        yield _refused(
            script.view.divides[0], "is distributed by DistributedDataParallel", "ddpify --target none first"
        )
        return
    found = optimizers(script)
    for optimizer in found:
        name = script.qualified(optimizer.call.func) if isinstance(optimizer.call, ast.Call) else ""
        if not name.startswith("torch.optim.") or name.rpartition(".")[2] not in BY_NUMBER:
            what = "each process has a part of each parameter, and this step may need all of one"
            yield _refused(optimizer.call.lineno, what)
    yield from _not_divided(script)
    if not found:
        return
    base = _only(found)
    if base is None:
        what = "one model whose parameters are handed over here is looked for, by a name of its own"
        yield _refused(found[0].call.lineno, what, "write optim.SGD(model.parameters(), …), or " + _REMEDY)
        return
    at = place(script, found[0].call, base)
    made: set[ast.expr] = {each for each in origins(script, base.node) if isinstance(each, ast.Call)}
    if not made:
        yield _refused(at.lineno, f"`{base.code}` is made elsewhere", "make it in this file, or " + _REMEDY)
        return
    yield from _inserts(script, base, at)
    calls: set[ast.AST] = {each.call for each in found}
    for node, why in strange_uses(script, made, calls, at):
        yield _refused(node.lineno, why)
    yield from _states(script, made, calls)


def _refused(line: int, what: str, remedy: str = _REMEDY) -> Finding:
    return Finding(RULE.id, "refused", line, what, remedy)


def _only(found: Sequence[Optimizer]) -> Base | None:
    """The one model that all optimizers of a script train, each of which names it itself."""
    bases = {base.code: base for optimizer in found for base in optimizer.bases}
    for optimizer in found:
        handed = [*ast.walk(optimizer.call)]
        named = all(base.node in handed for base in optimizer.bases)
        if not named or not optimizer.bases or optimizer.passed_in or not isinstance(optimizer.call, ast.Call):
            return None
    [base, *others] = bases.values()
    is_named = isinstance(base.node, ast.Name | ast.Attribute) and not (base.each_of or base.bound_at)
    return base if is_named and not others else None


def _inserts(script: Script, base: Base, at: ast.stmt) -> Iterator[Insert]:
    from ...facts.flow.program import Program  # nothing else in this style needs what it imports

    scope = script.scope(at)
    names = {each.id for each in script.find(ast.Name) if script.scope(each) is scope}
    layer = next(name for name in ("layer", "block", "sharded_layer") if name not in names)
    for name in blocks(script.program or Program((script,)), script):
        code = f"for {layer} in {base.code}.{name}:\n    fully_shard({layer})"
        yield Insert(at, code, f"put each of {base.code}.{name} together for itself", imports=("fully_shard",))
    message = f"divide {base.code} over the processes"
    yield Insert(at, f"fully_shard({base.code})", message, imports=("fully_shard",))


def _not_divided(script: Script) -> Iterator[Finding]:
    for node in script.nodes:
        name = script.qualified(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        for start, why in _NOT_DIVIDED.items():
            if name.startswith(start) and not isinstance(script.parents[node], ast.Attribute):
                yield _refused(node.lineno, why)  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg == "create_graph" and ast.unparse(word.value) != "False":
                    yield _refused(node.lineno, "torch's fully_shard gives no gradients of gradients")
        if (
            isinstance(node, ast.Constant)
            and node.value == "params"
            and isinstance(script.parents[node], ast.Subscript)
        ):
            yield _refused(node.lineno, "the parameters of the optimizer are read, and each process has a part of each")


def _states(script: Script, made: set[ast.expr], calls: set[ast.AST]) -> Iterator[Finding]:
    """The optimizer's state, of which each process has a part."""
    for node in script.find(ast.Attribute):
        if node.attr not in ("state_dict", "load_state_dict", "state"):
            continue
        makers = [each for each in origins(script, node.value) if isinstance(each, ast.Call)]
        if calls.intersection(makers) or (not makers and node.attr != "state"):
            what = "the optimizer's" if makers else "a model's or an optimizer's"
            yield _refused(node.lineno, f"`{ast.unparse(node)}`: {what} state, of which each process has a part")


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Refuse a program in whose other files a model is trained too, or none."""
    if not target.shards_models:
        return
    training = [script for script in scripts if optimizers(script)]
    for script in training[1:]:
        line = optimizers(script)[0].call.lineno
        yield script, _refused(line, f"an optimizer is built in {training[0].path.name} too", _REMEDY)


RULE = Rule(
    id="DDP128",
    title="Keep a part of the model on each process",
    why="""\
Asked for by --strategy fsdp2. torch's `fully_shard` leaves each process a part of every parameter, of its gradient and
of the optimizer's state, and puts a group of parameters together for its forward and backward. The layers of a
`ModuleList` that the forward goes through are groups of their own, the rest of the model is one. Forwards are divided
and losses, evaluations and decisions are those of the whole batch, as with DistributedDataParallel; the model keeps its
type, and `state_dict()`, which all processes call, is whole. Refused: what else gets hold of parameters, which are
DTensors now, and optimizers whose step needs all of one.""",
    before="""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedSampler,
    destroy_process_group,
    fully_shard,
    init_process_group,
    rank_zero_only,
)
from torch import nn
from torch.utils.data import TensorDataset

init_process_group("gloo")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))
model = Net()
for layer in model.layers:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank_zero_only(torch.save)(model.state_dict(), "last.pt")
destroy_process_group()
""",
    check=check,
    check_program=check_program,
    target="cpu",
    option="fully_sharded",
)
