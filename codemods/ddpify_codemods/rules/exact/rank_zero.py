"""DDP105: files, directories and logs are written once."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Literal

from ...facts.effects import (
    effects,
    handed_on,
    has_unknown_mode,
    mode_of,
    opened_for_writing,
    reads,
    reads_and_writes,
    runs_beside,
    sample_code,
    under_rank_guard,
)
from ...facts.on_rank_zero import kept_on_rank_zero
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target

# Their result is often used, and it can travel to the other processes.
_GIVE_RESULTS = ("subprocess.run", "subprocess.call", "subprocess.check_call", "os.system", "shutil.")

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TRACES = "torch.profiler.tensorboard_trace_handler"  # each process would leave a trace of its own


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap what writes: the function, so that its arguments are still evaluated everywhere (I11)."""
    per_sample = sample_code(script)
    for call in effects(script):
        if call not in per_sample and not under_rank_guard(script, call):
            yield _once(script, call)
            yield from _closed(script, call)
    for call in script.find(ast.Call):
        if script.qualified(call.func) == _TRACES and not under_rank_guard(script, call):
            yield Replace(call.func, "rank_zero_only({})", "leave the trace of rank 0 only", ("rank_zero_only",))
        if has_unknown_mode(script, call):
            yield _unknown_mode(call)
        elif reads_and_writes(script, call) and call not in per_sample and not under_rank_guard(script, call):
            yield _read_back(call)
    for function, call, beside in handed_on(script):
        if call not in per_sample and not under_rank_guard(script, call):
            yield _handed_on(function, beside)
    for attribute in kept_on_rank_zero(script):
        if attribute not in per_sample and not under_rank_guard(script, attribute):
            yield _kept(attribute)


def _once(script: Script, call: ast.Call) -> Replace:
    path = opened_for_writing(script, call)
    if path is not None:
        waits = _waits(script, call)
        message = "write the file on rank 0 only" + ", when all have read it" * waits
        return Replace(path, f"rank_zero_path({{}}{', wait=True' * waits})", message, ("rank_zero_path",))
    name = script.qualified(call.func)
    if name.startswith(_GIVE_RESULTS) and not isinstance(script.parents[call], ast.Expr):
        message = f"call {name} on rank 0, and give its result to all"
        return Replace(call.func, "rank_zero_value({})", message, ("rank_zero_value",))
    return Replace(
        call.func, "rank_zero_only({})", f"call {ast.unparse(call.func)} on rank 0 only", ("rank_zero_only",)
    )


def _handed_on(function: ast.expr, beside: bool) -> Edit | Finding:
    """What another function calls with it, on all ranks at the same place; a thread comes there at any time."""
    name = ast.unparse(function)
    if beside:
        message = f"every process would start {name} here, beside what it goes on with"
        return Finding(RULE.id, "refused", function.lineno, message, "call it, or start it where get_rank() == 0")
    return Replace(function, "rank_zero_only({})", f"call {name} on rank 0 only", ("rank_zero_only",))


def _waits(script: Script, call: ast.Call) -> bool:
    """Whether rank 0 would change a file that another rank still has to read (I10). What is added to a file is there
    when it is closed, for which all wait in a `with`."""
    is_kept = isinstance(script.parents[call], ast.withitem) and "a" in (mode_of(script, call) or "")
    return not is_kept and bool(_readers(script, call)) and _all_come(script, call)


def _closed(script: Script, call: ast.Call) -> Iterator[Insert]:
    """Let all wait until a file with data is complete, before any of them reads it (I10)."""
    message = "wait until the file is complete"
    item, statement = script.parents[call], script.statement(call)
    if not isinstance(item, ast.withitem):
        for end in _ends(script, call, statement) if _waits(script, call) else ():
            yield Insert(end, "barrier()", message, "after", ("barrier",))
    elif isinstance(item.optional_vars, ast.Name) and _holds_data(script, call):
        last = statement.body[-1]  # type: ignore[attr-defined]
        where: Literal["before", "after"] = "before" if isinstance(last, _LEAVES) else "after"
        yield Insert(last, f"rank_zero_only({item.optional_vars.id}.close)()", message, where, ("rank_zero_only",))


def _ends(script: Script, call: ast.Call, statement: ast.stmt) -> Iterator[ast.stmt]:
    """Behind which statements a file is closed: where its own function says so, or with the only one that it is in."""
    if isinstance(statement, ast.Expr):
        yield _behind(script, statement, _readers(script, call))
    elif isinstance(statement, ast.Assign) and statement.value is call:
        close = f"{ast.unparse(statement.targets[0])}.close()"
        for end in script.find(ast.Expr):
            if script.scope(end) is script.scope(call) and ast.unparse(end) == close and _all_come(script, end):
                yield _behind(script, end, _readers(script, call))


def _behind(script: Script, statement: ast.stmt, readers: Collection[ast.AST]) -> ast.stmt:
    """What all ranks leave alike, though rank 0 alone may fail to write: the `try` around a statement."""
    around = script.parents[statement]
    if not isinstance(around, ast.Try) or any(isinstance(each, _LEAVES) for each in ast.walk(around)):
        return statement
    if statement in around.body and any(each in readers for each in ast.walk(around)):
        return statement
    return _behind(script, around, readers)


def _all_come(script: Script, node: ast.AST) -> bool:
    """Whether all ranks come to a place, or none: not where one alone has failed, nor in a thread."""
    for around in script.ancestors(node):
        if isinstance(around, ast.ExceptHandler):
            tried = script.parents[around].body  # type: ignore[attr-defined]
            if not any(isinstance(each, ast.Call) and reads(script, each) for part in tried for each in ast.walk(part)):
                return False
    return not runs_beside(script, node)


def _is_read_method(method: ast.expr, path: str) -> bool:
    readers = ("read_text", "read_bytes", "open")
    return isinstance(method, ast.Attribute) and method.attr in readers and ast.unparse(method.value) == path


def _readers(script: Script, call: ast.Call) -> list[ast.Call]:
    """The calls that read what a call opens to write."""
    path = opened_for_writing(script, call)
    name = ast.unparse(path) if path is not None else ""
    others = [other for other in script.find(ast.Call) if path is not None and other is not call]
    return [
        other
        for other in others
        if (other.args and ast.unparse(other.args[0]) == name and reads(script, other))
        or _is_read_method(other.func, name)
    ]


def _holds_data(script: Script, call: ast.Call) -> bool:
    """Whether a file is written that may be read back: a binary one, or one that the script opens elsewhere too."""
    is_opened = opened_for_writing(script, call) is not None
    return bool(_readers(script, call)) or (is_opened and "b" in (mode_of(script, call) or ""))


def _unknown_mode(call: ast.Call) -> Finding:
    message = "the mode of this file is only known when the script runs"
    remedy = "if it is written, open rank_zero_path(...) from ddpify_runtime instead of its path"
    return Finding(RULE.id, "note", call.lineno, message, remedy)


def _read_back(call: ast.Call) -> Finding:
    message = "this file is read and written through one object, and is empty for all processes but one"
    remedy = "read it first, with an open of its own"
    return Finding(RULE.id, "warning", call.lineno, message, remedy)


def _kept(attribute: ast.Attribute) -> Replace:
    """What a logger keeps on rank 0 is read there, for all."""
    template = f'rank_zero_only(getattr)({{}}, "{attribute.attr}")'
    message = f"read {ast.unparse(attribute)} on rank 0, for all ranks"
    return Replace(attribute, template, message, ("rank_zero_only",), parts=(attribute.value,))


RULE = Rule(
    id="DDP105",
    title="Write files on rank 0 only",
    why="""Every process would write the same files, make the same directories and open the same logs: that races,
and fails where something may exist only once (I2, I3, I5, I6). The function is wrapped, not the call: its arguments
are evaluated by every process, since they may draw random numbers or communicate (I11), and all wait until rank 0
is done. A file that the script reads, too, is written when all have read it (`rank_zero_path(path, wait=True)`). What
comes of it is the same for all: a logger's run, a study or a database lives on rank 0, what is read of it
(`run.config["lr"]`, `study.best_params`) is read there for all, and an objective that it calls runs everywhere.""",
    before="""\
import os

import torch

os.makedirs("runs", exist_ok=True)
log = open("runs/log.csv", "w")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.write(f"{step},{loss.item()}\\n")
torch.save(model.state_dict(), "runs/model.pt")
""",
    after="""\
import os

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
    rank_zero_path,
)

init_process_group("gloo")

rank_zero_only(os.makedirs)("runs", exist_ok=True)
log = open(rank_zero_path("runs/log.csv"), "w")
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.write(f"{step},{loss.item()}\\n")
rank_zero_only(torch.save)(model.state_dict(), "runs/model.pt")
destroy_process_group()
""",
    check=check,
    target="cpu",
)
