"""Where a script waits for an optimizer that averages gradients (Horovod's), before they are looked at.

The rules that write such optimizers share it: those of the plain style, and those for hand-written code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .facts.following_step import following_steps
from .facts.origins import origins
from .facts.script import Script
from .rule import Edit, Finding, Guard, Insert, Replace

# What may stand between a backward pass and its step without looking at gradients.
_LOOKS_ELSEWHERE = frozenset({"item", "detach", "cpu", "float", "size", "len", "append"})


def zeroed(script: Script, made: set[ast.Call], stepped: set[str], rule: str, remedy: str) -> Iterator[Edit | Finding]:
    """Horovod 0.28 has a zero_grad of its own, without arguments; torch's sets gradients to None by default."""
    for call in script.find(ast.Call):
        given = [*call.args, *(word.value for word in call.keywords)]
        func = call.func
        if not given or not isinstance(func, ast.Attribute) or func.attr != "zero_grad":
            continue
        if ast.unparse(func.value) not in stepped and not any(each in made for each in origins(script, func.value)):
            continue
        if all(isinstance(value, ast.Constant) and value.value is True for value in given):
            yield Replace(call, "{}()", "as it is by default: Horovod's takes no argument", parts=(func,))
        else:
            message = "Horovod's zero_grad takes no argument, and sets gradients to None"
            yield Finding(rule, "refused", call.lineno, message, remedy)


def stepped_once(
    script: Script, backward: ast.Call, made: set[ast.Call], rule: str, remedy: str
) -> Iterator[Edit | Finding]:
    """The step that belongs to a backward pass: one for each, in the same block."""
    at, between, steps = following_steps(script, backward, made)
    passes = [node for node in between if isinstance(node, ast.Call) and _is_backward(node)]
    if len(steps) != 1 or passes:
        message = "this is not followed by one step of the optimizer and no other backward pass: Horovod averages once"
        yield Finding(rule, "refused", backward.lineno, message, remedy)
        return
    step = steps[0]
    if step.is_scaled or any(_may_look(node) for node in between):
        message = "wait for the averages before gradients are looked at"
        yield Insert(at, f"{step.optimizer}.synchronize()", message, "after")
        yield Guard(step.at, f"{step.optimizer}.skip_synchronize()", message, is_context=True)


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _may_look(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name not in _LOOKS_ELSEWHERE
    return isinstance(node, ast.Attribute) and node.attr == "grad"
