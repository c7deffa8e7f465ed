"""DDP127: gradients of parameters by torch.autograd.grad (L15)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import arguments, bindings
from ...facts.origins import passed
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, ReplaceImport, Rule
from ...targets import Target

_NAMES = frozenset({"torch.autograd.grad", "torch.grad"})
_MESSAGE = "average the gradients that autograd.grad returns over the processes: they never go through .backward()"
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Average the gradients that torch.autograd.grad returns, but for those of tensors that can only be samples."""
    taken = [call for call in script.find(ast.Call) if _takes_gradients_of_parameters(script, call)]
    imports = {
        alias.asname or alias.name: (statement, alias.name)
        for statement in script.find(ast.ImportFrom)
        for alias in statement.names
        if f"{statement.module}.{alias.name}" in _NAMES
    }
    for call in taken:
        if not isinstance(call.func, ast.Name) or call.func.id not in imports:
            yield Replace(call.func, "grad", _MESSAGE, ("grad",))
    for name in dict.fromkeys(call.func.id for call in taken if isinstance(call.func, ast.Name)):
        if name in imports:
            yield ReplaceImport(*imports[name], _MESSAGE)


def _takes_gradients_of_parameters(script: Script, call: ast.Call) -> bool:
    taken = script.qualified(call.func) in _NAMES and not _in_autograd_function(script, call)
    return taken and not _of_samples(script, call) and not _is_followed_to_samples(script, call)


def _is_followed_to_samples(script: Script, call: ast.Call) -> bool:
    """Whether the program, as it is followed for plain code, gives nothing but samples."""
    if script.program is None:
        return False
    found = script.program.followed.found
    return call in found.sample_gradients - found.other_gradients


def _in_autograd_function(script: Script, call: ast.Call) -> bool:
    """Whether it serves a torch.autograd.Function, whose backward hands the gradient on to `.backward()`."""
    around = [parent for parent in script.ancestors(call) if isinstance(parent, ast.ClassDef)]
    return any(script.qualified(base) in _FUNCTIONS for each in around for base in each.bases)


def _of_samples(script: Script, call: ast.Call) -> bool:
    """Whether the gradient is that of tensors that ask for one by themselves, as in a gradient penalty: the penalty
    itself is differentiated by the `.backward()` that follows."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "inputs"] or call.args[1:2]
    if not given:
        return False
    inputs = given[0].elts if isinstance(given[0], (ast.List, ast.Tuple)) else given[:1]
    scope = script.scope(call)
    return all(isinstance(value, ast.Name) and _is_sample(script, scope, value.id) for value in inputs)


def _is_sample(script: Script, scope: ast.AST, name: str, depth: int = 4) -> bool:
    """Whether all that a name is made of is new, and it asks for a gradient; or every caller gives such."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) or not depth:
        return False
    made = bindings(script, scope).get(name, [])
    if made:
        asks = any(map(_asks, made)) or any(_asks_for(node, name) for node in ast.walk(scope))
        return asks and all(isinstance(value, ast.BinOp) or _asks(value) for value in made)
    if isinstance(scope, ast.Module) or name not in arguments(scope):
        return False
    given = list(passed(script, scope, name))
    return bool(given) and all(
        isinstance(value, ast.Name) and _is_sample(script, script.scope(value), value.id, depth - 1) for value in given
    )


def _asks(value: ast.expr) -> bool:
    """`Variable(x, requires_grad=True)`, `(a + b).requires_grad_()`, `x.detach().requires_grad_()`."""
    if not isinstance(value, ast.Call):
        return False
    if any(keyword.arg == "requires_grad" for keyword in value.keywords):
        return True
    if not isinstance(value.func, ast.Attribute) or value.func.attr != "requires_grad_":
        return False
    of = value.func.value
    new = isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr == "detach"
    return new or isinstance(of, ast.BinOp)


def _asks_for(node: ast.AST, name: str) -> bool:
    """`x.requires_grad_()`, `x.requires_grad = True`."""
    return (
        isinstance(node, ast.Attribute)
        and (node.attr == "requires_grad_" or (node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)))
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


RULE = Rule(
    id="DDP127",
    title="Gradients by autograd.grad are averaged",
    why="""\
Gradients are averaged while `.backward()` fills `.grad`. What torch.autograd.grad returns never passes there: an inner
step of MAML, a penalty on gradients or a hand-written update would go its own way on every process (L15).
`ddpify_runtime.grad` averages the gradients of parameters, and can be differentiated again. That of samples, as in
the penalty of a WGAN, stays torch's (L14).""",
    before="""\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(4, 2)).mean()
grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
(loss + sum(grad.square().sum() for grad in grads)).backward()
optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)
from ddpify_runtime import grad as ddpify_grad

init_process_group("nccl")

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(4, 2)).mean()
grads = ddpify_grad(loss, model.parameters(), create_graph=True)
(loss + sum(grad.square().sum() for grad in grads)).backward()
optimizer.step()
destroy_process_group()
""",
    check=check,
)
