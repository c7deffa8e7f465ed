"""DDP132: all ranks see a signal at the same step (P9)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects, sample_code, under_rank_guard
from ...facts.script import Script
from ...facts.signal_handlers import at_a_signal, set_at_a_signal, takes_signals
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_REMEDY = "set a flag in the function that the signal calls, and save or leave where the loop reads it"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let rank 0 say whether a signal has come; refuse what would be done at once, by each rank at its own place."""
    if not (handlers := [*takes_signals(script)]):
        return
    inside = at_a_signal(script)
    for call in effects(script):
        if call in inside and not under_rank_guard(script, call):
            message = f"{ast.unparse(call.func)} is called when a signal comes, by each process at another place"
            yield Finding(RULE.id, "refused", call.lineno, message, _REMEDY)
    for call, handler in handlers:
        if handler not in inside and not _is_defined(script, inside, handler):
            message = (
                f"what {ast.unparse(handler)} does when a signal comes, each process at another place, is not seen"
            )
            yield Finding(RULE.id, "warning", call.lineno, message, _REMEDY)
    per_sample = sample_code(script)
    for read in set_at_a_signal(script):
        if read not in per_sample and not under_rank_guard(script, read):
            yield _agreed(read)


def _is_defined(script: Script, inside: frozenset[ast.AST], handler: ast.expr) -> bool:
    name = getattr(handler, "attr", getattr(handler, "id", ""))
    return any(getattr(each, "name", "") == name for each in inside)


def _agreed(read: ast.expr) -> Replace:
    message = "take rank 0's answer whether a signal has come"
    if isinstance(read, ast.Call):
        return Replace(read.func, "rank_zero_value({})", message, ("rank_zero_value",))
    return Replace(read, "rank_zero_value(lambda: {})()", message, ("rank_zero_value",))


RULE = Rule(
    id="DDP132",
    title="One signal, one step",
    why="""\
A signal that comes before the job is stopped (SIGTERM, SIGUSR1) finds each process at another place. One leaves its
loop, or saves, a step before the other, which then waits for it in the next reduction (P9). Rank 0 says whether the
signal has come, wherever the script reads what it sets then; a signal that only other ranks are sent is not seen. What
is saved in the function that the signal calls is refused: rank 0 may be in the middle of a step.""",
    before="""\
import signal

import torch

stop = False


def leave(number, frame):
    global stop
    stop = True


signal.signal(signal.SIGUSR1, leave)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
    if stop:
        torch.save(model.state_dict(), "stopped.pt")
        break
""",
    after="""\
import signal

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
    rank_zero_value,
)

init_process_group("gloo")

stop = False


def leave(number, frame):
    global stop
    stop = True


signal.signal(signal.SIGUSR1, leave)
model = torch.nn.Linear(2, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
    if rank_zero_value(lambda: stop)():
        rank_zero_only(torch.save)(model.state_dict(), "stopped.pt")
        break

destroy_process_group()
""",
    check=check,
    target="cpu",
)
