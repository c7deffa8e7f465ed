"""Steps that a script takes by hand, without an optimizer: `for p in model.parameters(): p -= lr * p.grad`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .bindings import names_in
from .origins import origins, sources
from .script import Script

_FROM_VECTOR = frozenset(
    {"torch.nn.utils.vector_to_parameters", "torch.nn.utils.convert_parameters.vector_to_parameters"}
)
# A function of torch.optim takes the step of an optimizer without being one: torch.optim.sgd.sgd(params, grads, …).
_STEP = re.compile(r"torch\.optim\.(_functional|[a-z_]+)\.[a-z_]+$|torch\._foreach_\w+_$")
_TAKE_GRADIENTS = frozenset({"torch.autograd.grad", "torch.grad", "torch.func.grad", "torch.func.grad_and_value"})


def update_loops(script: Script) -> Iterator[ast.For]:
    """Every loop that changes what it runs over by its gradients."""
    for loop in script.find(ast.For):
        names = names_in(loop.target)
        inside = [node for statement in loop.body for node in ast.walk(statement)]
        changed = any(_root(tensor) in names for node in inside if (tensor := _changed(node)) is not None)
        if changed and (any(map(_is_gradient, inside)) or _runs_over_gradients(script, loop)):
            yield loop


def updated_tensors(script: Script) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Every statement that changes one tensor by its own gradient, `w -= lr * w.grad`, and the tensor."""
    for statement in script.find(ast.stmt):
        if isinstance(statement, (ast.AugAssign, ast.Assign, ast.Expr)):
            inside = list(ast.walk(statement))
            for tensor in filter(None, map(_changed, inside)):
                code = ast.unparse(tensor)
                if any(_is_gradient(node) and ast.unparse(node.value) == code for node in inside):  # type: ignore[attr-defined]
                    yield statement, tensor


def steps(script: Script) -> Iterator[ast.Call]:
    """Every call that changes parameters by what it is given: of a function of torch, or by loading a state."""
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        changes = name in _FROM_VECTOR or (_STEP.match(name) and not name.startswith("torch.optim.lr_scheduler."))
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if (
            changes
            or (method == "load_state_dict" and any(_is_made_of_gradients(script, each) for each in call.args))
            or any(keyword.arg == "out" and ".data" in ast.unparse(keyword.value) for keyword in call.keywords)
        ):
            yield call


def _is_made_of_gradients(script: Script, value: ast.expr) -> bool:
    return any(_is_gradient(node) for each in (value, *sources(script, value)) for node in ast.walk(each))


def takes_gradients(script: Script, call: ast.Call) -> bool:
    """Whether a call computes gradients and gives them back: `torch.autograd.grad(…)`, `torch.func.grad(f)(…)`."""
    function = call.func.func if isinstance(call.func, ast.Call) else call.func
    return script.qualified(function) in _TAKE_GRADIENTS


def _changed(node: ast.AST) -> ast.expr | None:
    """The tensor that an expression or an assignment changes in place; `w = w - …` counts."""
    found: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        found = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        made_of_itself = isinstance(node.value, ast.BinOp) and ast.unparse(target) == ast.unparse(node.value.left)
        found = target if made_of_itself or (isinstance(target, ast.Attribute) and target.attr == "data") else None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        found = node.func.value if method.endswith("_") and not method.endswith("__") and node.args else None
    if isinstance(found, ast.Attribute) and found.attr == "data":
        found = found.value
    return None if found is None or _is_gradient(found) else found


def _is_gradient(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _runs_over_gradients(script: Script, loop: ast.For) -> bool:
    """`for p, g in zip(model.parameters(), torch.autograd.grad(…))`."""
    parts = loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]
    made = (value for part in parts for value in origins(script, part))
    return any(isinstance(value, ast.Call) and takes_gradients(script, value) for value in made)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
