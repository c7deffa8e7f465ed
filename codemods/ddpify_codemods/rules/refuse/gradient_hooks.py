"""DDP306: code that reaches into the backward pass, or writes gradients by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import bindings
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_HOOKS = frozenset(
    {"register_hook", "register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
    | {"register_post_accumulate_grad_hook", "register_multi_grad_hook"}
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse backward hooks and assignments to `.grad`."""
    for node in script.find(ast.Call, ast.Assign):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in _HOOKS:
                continue
            message = f"{node.func.attr} runs inside the backward pass, where a process only sees its part of the batch"
            remedy = "do it after loss.backward(), on the finished gradients"
            yield Finding(RULE.id, "refused", node.lineno, message, remedy)
        else:
            for assigned in node.targets:
                if _is_gradient(assigned) and not _is_harmless(script, assigned, node.value):
                    message = f"`{ast.unparse(assigned)}` is written by hand, past the averaging over the processes"
                    remedy = "let loss.backward() fill the gradients, and change them in place if you must"
                    yield Finding(RULE.id, "refused", node.lineno, message, remedy)


def _is_gradient(node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    if node.attr == "data":
        return isinstance(node.value, ast.Attribute) and _is_gradient(node.value)
    is_own_attribute = isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr in ("grad", "_grad") and not is_own_attribute


def _is_harmless(script: Script, assigned: ast.expr, value: ast.expr) -> bool:
    """Whether a gradient is cleared, or made of itself."""
    code = ast.unparse(value)
    cleared = code == "None" or "zeros" in code or ".zero_()" in code
    gradient = assigned.value if isinstance(assigned, ast.Attribute) and assigned.attr == "data" else assigned
    return cleared or _is_made_of(script, value, ast.unparse(gradient))


def _is_made_of(script: Script, value: ast.expr, code: str, depth: int = 4) -> bool:
    """Whether an expression reads something, or variables that were made of it."""
    inside = list(ast.walk(value))
    if any(isinstance(node, ast.Attribute) and ast.unparse(node) == code for node in inside):
        return True
    names = [node for node in inside if isinstance(node, ast.Name)] if depth else []
    return any(
        _is_made_of(script, made, code, depth - 1)
        for name in names
        for made in bindings(script, script.scope(name)).get(name.id, ())
    )


RULE = Rule(
    id="DDP306",
    title="Backward hooks and hand-written gradients are not converted",
    why="""\
A hook on a tensor or a module runs while the gradient of this process's rows passes by, before the average: what it
clips or records is not what it was with the whole batch. A gradient that is assigned by hand is not averaged at all
(L15). In-place changes after `.backward()` (clipping, scaling) see the finished gradient and are fine.""",
    before="""\
import torch

model = torch.nn.Linear(2, 1)
for parameter in model.parameters():
    parameter.register_hook(lambda grad: grad.clamp(-1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
""",
    after="",
    check=check,
)
