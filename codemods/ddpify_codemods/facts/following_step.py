"""The optimizer's step that follows a backward pass, and what stands between them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .origins import origins
from .script import Script


@dataclass(frozen=True)
class Step:
    """`optimizer.step()` or `scaler.step(optimizer)`: the statement, the optimizer's code, whether it is a scaler's."""

    at: ast.stmt
    optimizer: str
    is_scaled: bool


def following_steps(
    script: Script, backward: ast.Call, made: set[ast.Call]
) -> tuple[ast.stmt, list[ast.AST], Sequence[Step]]:
    """The statement after which gradients may be looked at, what stands between it and the step, and the steps."""
    at = script.statement(backward)
    while True:
        block = script.block(at)
        after = block[block.index(at) + 1 :]
        steps = [step for each in after if (step := _step(script, each, made)) is not None]
        parent = script.parents[at]
        if steps or not isinstance(parent, ast.With):
            break
        at = parent
    nodes: list[ast.AST] = []
    for each in after:
        if steps and each is steps[0].at:
            break
        nodes += ast.walk(each)
    return at, nodes, steps


def _step(script: Script, statement: ast.stmt, made: set[ast.Call]) -> Step | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    for node, is_scaled in ((call.func.value, False), *((each, True) for each in call.args[:1])):
        if _is_optimizer(script, node, made):
            return Step(statement, ast.unparse(node), is_scaled)
    return None


def _is_optimizer(script: Script, node: ast.expr, made: set[ast.Call]) -> bool:
    if any(origin in made for origin in origins(script, node)):
        return True
    code = ast.unparse(node)
    methods = (call.func for call in script.find(ast.Call) if isinstance(call.func, ast.Attribute))
    return any(method.attr == "zero_grad" and ast.unparse(method.value) == code for method in methods)
