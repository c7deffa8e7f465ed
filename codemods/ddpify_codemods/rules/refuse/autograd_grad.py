"""DDP305: gradients that are computed past `.backward()` (L14, L15)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import arguments
from ...facts.origins import passed
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_FUNCTIONAL = ("torch.func.", "functorch.", "higher.", "torch.autograd.functional.", "learn2learn.")
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_FUNCTIONAL_CALL = "torch.nn.utils.stateless.functional_call"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse functional gradients, and autograd.grad of anything but an input of a module."""
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if _in_autograd_function(script, call):
            continue
        if name.startswith(_FUNCTIONAL) or name == _FUNCTIONAL_CALL:
            yield _refused(call, f"{name} computes with the parameters outside of the module")
        elif name in ("torch.autograd.grad", "torch.grad") and not _of_inputs(script, call):
            yield _refused(call, "autograd.grad takes a gradient that never goes through .backward()")


def _in_autograd_function(script: Script, call: ast.Call) -> bool:
    """Whether it serves a torch.autograd.Function, whose backward hands the gradient on to `.backward()`."""
    around = [parent for parent in script.ancestors(call) if isinstance(parent, ast.ClassDef)]
    return any(script.qualified(base) in _FUNCTIONS for each in around for base in each.bases)


def _refused(call: ast.Call, message: str) -> Finding:
    remedy = "write the training step with loss.backward() and optimizer.step()"
    return Finding(RULE.id, "refused", call.lineno, f"{message}, so it is not averaged over the processes", remedy)


def _of_inputs(script: Script, call: ast.Call) -> bool:
    """Whether the gradient is that of a module's input, as in a gradient penalty: the penalty itself is differentiated
    by the `.backward()` that follows."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "inputs"] or call.args[1:2]
    if not given:
        return False
    inputs = given[0].elts if isinstance(given[0], (ast.List, ast.Tuple)) else given[:1]
    scope = script.scope(call)
    return all(
        _root(value) and (_is_input(script, scope, _root(value)) or _is_passed_input(script, scope, _root(value)))
        for value in inputs
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_input(script: Script, scope: ast.AST, name: str) -> bool:
    return any(
        _asks_for_gradient(node, name) or (isinstance(node, ast.Call) and _is_module_call(script, node, name))
        for node in ast.walk(scope)
    )


def _is_passed_input(script: Script, scope: ast.AST, name: str, depth: int = 4) -> bool:
    """Whether a function is given the input of a module: as its forward, or by every caller."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or name not in arguments(scope) or not depth:
        return False
    given = [(script.scope(value), _root(value)) for value in passed(script, scope, name)]
    by_callers = all(
        root and (_is_input(script, caller, root) or _is_passed_input(script, caller, root, depth - 1))
        for caller, root in given
    )
    return scope.name == "forward" or (bool(given) and by_callers)


def _asks_for_gradient(node: ast.AST, name: str) -> bool:
    """`x.requires_grad_()`, `x.requires_grad = True`, `x = Variable(…, requires_grad=True)`."""
    if isinstance(node, ast.Assign) and any(_root(target) == name for target in node.targets):
        return "requires_grad" in ast.unparse(node.value)
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("requires_grad", "requires_grad_")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


def _is_module_call(script: Script, call: ast.Call, name: str) -> bool:
    called = script.qualified(call.func)
    if not called or called.split(".")[0] in {"torch", "F", *script.imported} or called in script.defined:
        return False
    last = called.rpartition(".")[2]
    is_method = isinstance(call.func, ast.Attribute) and not called.startswith("self.")
    return (not is_method or last == "forward") and any(_root(value) == name for value in call.args)


RULE = Rule(
    id="DDP305",
    title="Gradients past backward() are not converted",
    why="""\
Gradients are averaged while `.backward()` fills `.grad`. What torch.autograd.grad, torch.func or higher return never
passes there; a MAML step or a hand-written update would go its own way on every process (L15). A gradient penalty is
fine: the gradient is that of an input, and the penalty goes through `.backward()` with the rest of the loss (L14).""",
    before="""\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(4, 2)).mean()
grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
sum(grad.square().sum() for grad in grads).backward()
optimizer.step()
""",
    after="",
    check=check,
)
