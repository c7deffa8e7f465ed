"""DDP512: a module that an optimizer trains, but that no DistributedDataParallel sees (L17, M17)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import attribute_bindings, bindings
from ...facts.hand_written import called, wrap_calls, wrapped_names
from ...facts.optimizers import optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...facts.trained_modules import Base
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report modules that are made here and trained beside a wrapped one."""
    calls = wrap_calls(script)
    if not calls or "all_reduce" in script.text or "average_gradients" in script.text:
        return
    seen: set[str] = set()
    for optimizer in optimizers(script):
        for base in optimizer.bases:
            if base.code not in seen and _is_made_here(script, base) and not _is_wrapped(script, base, calls):
                seen.add(base.code)
                message = (
                    f"{base.code} is trained, but is not inside a DistributedDataParallel: its gradients stay local"
                )
                remedy = "wrap it too, or make it a part of the wrapped module"
                yield Finding(RULE.id, "warning", optimizer.call.lineno, message, remedy)


def _is_made_here(script: Script, base: Base) -> bool:
    """Whether it is bound once, to a new module: `head = nn.Linear(…)`, `criterion = CenterLoss(…)`."""
    if not isinstance(base.node, (ast.Name, ast.Attribute)) or base.each_of:
        return False
    values = _values(script, base)
    made = _unmoved(values[0]) if values else None
    if len(values) != 1 or not isinstance(made, ast.Call):
        return False
    name = script.qualified(made.func)
    return name.startswith("torch.nn.") or any(part.name == name for part in script.find(ast.ClassDef))


def _unmoved(node: ast.expr) -> ast.expr:
    """What is moved to a device: `model` of `model.to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        node = node.func.value
    return node


def _values(script: Script, base: Base) -> list[ast.expr]:
    if isinstance(base.node, ast.Name):
        known = bindings(script, script.scope(base.node)), bindings(script, script.tree)
        return next((names[base.code] for names in known if base.code in names), [])
    return list(attribute_bindings(script).get(base.code, ()))


def _is_wrapped(script: Script, base: Base, calls: tuple[ast.Call, ...]) -> bool:
    """Whether it, or something that is made of it, is given to a DistributedDataParallel or a function of one's own."""
    inside = {ast.unparse(part) for call in calls for part in ast.walk(call)}
    inside |= {ast.unparse(_unmoved(each)) for call in calls for each in origins(script, call.args[0])}
    if base.code in inside | wrapped_names(script) or _is_handed_over(script, base, calls):
        return True
    if _is_part(script, base, calls):
        return True
    return any(
        base.code in {ast.unparse(value) for value in (*call.args, *(word.value for word in call.keywords))}
        and _makes_module(script, call, inside)
        for call in script.find(ast.Call)
    )


def _is_part(script: Script, base: Base, calls: tuple[ast.Call, ...]) -> bool:
    """Whether it became a part of a module before that was wrapped: `net.fc = Linear(8, 3); model = DDP(net)`."""
    if not isinstance(base.node, ast.Attribute):
        return False
    module = ast.unparse(base.node.value)
    made = max(value.lineno for value in _values(script, base))
    return any(
        call.lineno > made and script.scope(call) is script.scope(base.node) and module in map(ast.unparse, call.args)
        for call in calls
    )


def _is_handed_over(script: Script, base: Base, calls: tuple[ast.Call, ...]) -> bool:
    """Whether it is returned, or given to a function or class of this file that wraps something."""
    scope = script.scope(base.node)
    if any(base.code in ast.unparse(node) for node in ast.walk(scope) if isinstance(node, ast.Return)):
        return True
    wrapping = {getattr(parent, "name", "") for call in calls for parent in script.ancestors(call)}
    return any(
        called(call) in wrapping and base.code in {ast.unparse(value) for value in call.args}
        for call in script.find(ast.Call)
    )


def _makes_module(script: Script, call: ast.Call, inside: set[str]) -> bool:
    made = script.statement(call)
    kept = isinstance(made, ast.Assign) and _unmoved(made.value) is call
    return kept and any(ast.unparse(each) in inside for each in made.targets)  # type: ignore[attr-defined]


RULE = Rule(
    id="DDP512",
    title="Everything that is trained is wrapped",
    why="""\
Each DistributedDataParallel averages the gradients of the module in it. A loss with parameters (center loss, ArcFace),
a second network or a projection head that was left out is trained by the optimizer with the gradients of this rank;
it differs between the ranks, without an error (L17, M17).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 2))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 2))
head = nn.Linear(2, 2)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(head(model(x)), y).backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 2))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 2))
head = DDP(nn.Linear(2, 2))
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(head(model(x)), y).backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
