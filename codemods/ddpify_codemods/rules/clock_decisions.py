"""DDP308: decisions taken from a clock differ between processes (E8)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Script
from ..rule import Edit, Finding, Rule
from ..targets import Target

_CLOCKS = frozenset(
    {"time.time", "time.time_ns", "time.perf_counter", "time.monotonic", "time.process_time", "time.perf_counter_ns"}
    | {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.now", "timeit.default_timer"}
)
# What may depend on a clock: it changes nothing but what is shown.
_SHOWS = frozenset({"print", "format", "round", "write", "flush", "info", "debug", "warning", "set_postfix", "append"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse loops that end, and steps that are taken, by this process's own clock."""
    for node in script.nodes:
        decides = isinstance(node, ast.While) or (
            isinstance(node, ast.If) and _acts(node) and _is_in_loop(script, node)
        )
        if decides and isinstance(node, (ast.While, ast.If)) and _reads_clock(script, node.test):
            yield _refused(node.test)


def _refused(test: ast.expr) -> Finding:
    message = (
        f"`{ast.unparse(test)}` reads this process's clock: the processes would decide differently and wait for ever"
    )
    remedy = "count steps or epochs instead of seconds"
    return Finding(RULE.id, "refused", test.lineno, message, remedy)


def _reads_clock(script: Script, test: ast.expr) -> bool:
    if _has_clock(script, test):
        return True
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
        and _is_difference(script, node.value)
        for node in ast.walk(script.scope(test))
    )


def _is_difference(script: Script, value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and _has_clock(script, value)


def _has_clock(script: Script, node: ast.expr) -> bool:
    return any(isinstance(call, ast.Call) and script.qualified(call.func) in _CLOCKS for call in ast.walk(node))


def _is_in_loop(script: Script, node: ast.AST) -> bool:
    for parent in script.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(parent, (ast.For, ast.While)):
            return True
    return False


def _acts(node: ast.If) -> bool:
    return not all(_only_shows(child) for child in node.body + node.orelse)


def _only_shows(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Pass)):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    func = statement.value.func
    return (func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)) in _SHOWS


RULE = Rule(
    id="DDP308",
    title="Loops that end by the clock are not converted",
    why="""\
The clocks of two processes never agree to the last microsecond. One leaves the loop, or saves, a step before the
other, which then waits for it in the next reduction until it times out (E8).""",
    before="""\
import time

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
while time.time() - start < 60:
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
""",
    after="",
    check=check,
)
