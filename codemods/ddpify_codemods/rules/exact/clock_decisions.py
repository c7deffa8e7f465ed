"""DDP118: a decision that is taken from a clock is rank 0's, for all (E8)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from ...facts.called_modules import last_name
from ...facts.distribution import called_names
from ...facts.effects import sample_code, under_rank_guard
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_CLOCKS = frozenset(
    {"time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.monotonic_ns"}
    | {"time.process_time", "time.process_time_ns", "time.thread_time", "time.thread_time_ns"}
    | {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.now", "timeit.default_timer"}
)
# What may depend on a clock: it changes nothing but what is shown.
_SHOWS = frozenset({"print", "format", "round", "write", "flush", "info", "debug", "warning", "set_postfix"})
# Calls in a condition that rank 0 can make alone: they neither communicate nor read a tensor.
_PLAIN = frozenset({"int", "float", "round", "abs", "min", "max", "datetime.timedelta", "datetime.datetime.timedelta"})
_PLAIN_METHODS = frozenset({"total_seconds", "timestamp"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let rank 0 decide, where a loop ends or a step is taken by the clock."""
    yield from decisions(script, lambda _: False)


def decisions(
    script: Script, meets: Callable[[Sequence[ast.AST]], bool], telling: frozenset[str] = frozenset()
) -> Iterator[Replace | Finding]:
    """Where rank 0 decides by its clock.

    Args: the file; whether ranks may wait for each other in some statements or expressions, which only show what they
    compute; the functions that give back the time, or what they decide by it.
    """
    if not telling and not called_names(script) & _CLOCKS:
        return
    per_sample = sample_code(script)
    for node in script.find(ast.While, ast.If, ast.IfExp, ast.BoolOp):
        if isinstance(node, ast.If):
            decides = (_acts(script, node) and _recurs(script, node)) or meets(node.body + node.orelse)
        elif isinstance(node, ast.IfExp):
            decides = meets([node.body, node.orelse])
        elif isinstance(node, ast.BoolOp):
            decides = meets(node.values[1:])
        else:
            decides = True
        if decides and node not in per_sample:
            for part in _parts(node.test if isinstance(node, (ast.If, ast.IfExp, ast.While)) else node):  # type: ignore[arg-type]
                asks = bool(telling) and _asks(part, telling)
                if (asks or reads_clock(script, part)) and not under_rank_guard(script, part):
                    yield _decided(part) if asks or _is_plain(script, part) else _refused(part)


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that are joined by `and`, `or` and `not`, each of which one process can decide for all."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _parts(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    else:
        yield test


def _decided(test: ast.expr) -> Replace:
    message = "take rank 0's clock on every rank"
    return Replace(test, "rank_zero_value(lambda: {})()", message, ("rank_zero_value",))


def _refused(test: ast.expr) -> Finding:
    message = (
        f"`{ast.unparse(test)}` reads this process's clock: the processes would decide differently and wait for ever"
    )
    remedy = "compare the seconds with a number, or count steps or epochs instead"
    return Finding(RULE.id, "refused", test.lineno, message, remedy)


def _is_plain(script: Script, test: ast.expr) -> bool:
    """Whether nothing but numbers and clocks is looked at, so that rank 0 can do it alone."""
    calls = (node for node in ast.walk(test) if isinstance(node, ast.Call))
    return all(
        _is_clock(script, call)
        or script.qualified(call.func) in _PLAIN
        or (isinstance(call.func, ast.Attribute) and call.func.attr in _PLAIN_METHODS)
        for call in calls
    ) and not any(isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield)) for node in ast.walk(test))


def _asks(test: ast.expr, telling: frozenset[str]) -> bool:
    """Whether a condition asks a function, or a property, what time it is."""
    called = (node.func if isinstance(node, ast.Call) else node for node in ast.walk(test))
    names = {last_name(node) for node in called if isinstance(node, ast.Attribute)}
    names |= {node.func.id for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return not _is_identity(test) and not names.isdisjoint(telling)


def reads_clock(script: Script, test: ast.expr, telling: frozenset[str] = frozenset()) -> bool:
    """Whether a condition, or a number, is made of what a clock says, or a function that tells it."""
    if _has_clock(script, test, telling):
        return True
    if not isinstance(test, ast.Compare):  # `due = now - last > 5`, `if due:`
        compared = (each for each in origins(script, test, depth=2) if isinstance(each, ast.Compare))
        return any(reads_clock(script, each, telling) for each in compared)
    if _is_identity(test):
        return False
    return any(_has_clock(script, value, telling) for name in _names(test) for value in _computed_of(script, name))


def tells_time(script: Script, value: ast.expr, telling: frozenset[str]) -> bool:
    """Whether something is what a clock says, or a function that tells it, or is decided by it."""
    return any(
        reads_clock(script, part, telling)
        or any(_has_clock(script, each, telling) for each in origins(script, part, depth=2))
        for part in _parts(value)
    )


def _is_identity(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in test.ops
    )


def _names(node: ast.expr) -> list[ast.expr]:
    """The names in an expression, but for those of what is only counted: `len(times)`."""
    counted = {part for call in ast.walk(node) if _is_count(call) for part in ast.walk(call)}
    return [part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)) and part not in counted]


def _computed_of(script: Script, name: ast.expr) -> Iterator[ast.expr]:
    """What a number is made of, a sum's parts too: `delay = now - last`."""
    for value in origins(script, name, depth=2):
        yield value
        if isinstance(value, ast.BinOp):
            yield from (each for part in _names(value) for each in origins(script, part, depth=2))


def _is_count(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "len"


def _has_clock(script: Script, node: ast.expr, telling: frozenset[str] = frozenset()) -> bool:
    """Whether a clock is read in a sum or comparison; a function that is given a time need not give one back."""
    inside = [node]
    while inside:
        part = inside.pop()
        if isinstance(part, ast.Attribute) and part.attr in telling:
            return True
        if isinstance(part, ast.Call):
            if _is_clock(script, part) or last_name(part.func) in telling:
                return True
            plain = script.qualified(part.func) in _PLAIN
            inside += part.args if plain else [part.func] if isinstance(part.func, ast.Attribute) else []
        elif isinstance(part, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.IfExp)):
            inside += [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
    return False


def _is_clock(script: Script, call: ast.Call) -> bool:
    return script.qualified(call.func) in _CLOCKS


def _recurs(script: Script, node: ast.AST) -> bool:
    """Whether a condition is in a loop, or in a function, which a loop may call."""
    return any(
        isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While))
        for parent in script.ancestors(node)
    )


def _acts(script: Script, node: ast.If) -> bool:
    return not all(_only_shows(script, child) for child in node.body + node.orelse)


def _only_shows(script: Script, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):  # `last = time.time()`
        return any(_has_clock(script, value) for value in origins(script, statement.value, depth=2))
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return isinstance(statement, ast.Pass)
    func = statement.value.func
    return (func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)) in _SHOWS


RULE = Rule(
    id="DDP118",
    title="One clock decides for all",
    why="""\
The clocks of two processes never agree to the last microsecond. One leaves the loop, or saves, a step before the
other, which then waits for it in the next reduction until it times out (E8). Rank 0 looks at its clock, and tells the
others. A condition that looks at more than clocks and numbers is refused.""",
    before="""\
import time

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start, step = time.time(), 0
while step < 1000 and time.time() - start < 60:
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
    step += 1
""",
    after="""\
import time

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_value,
)

init_process_group("gloo")

model = torch.nn.Linear(2, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start, step = time.time(), 0
while step < 1000 and rank_zero_value(lambda: time.time() - start < 60)():
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
    step += 1

destroy_process_group()
""",
    check=check,
    target="cpu",
)
