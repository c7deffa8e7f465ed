"""DDP110: questions about the presence of a GPU get the answer of the target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import Branches, asks_for_accelerator, branches_of, inside_f_string, source
from ...facts.gpu_answers import demands_gpu, in_test, is_harmless, only_reported
from ...facts.places import is_device_call
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_CURRENT = "torch.accelerator.current_accelerator"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Answer the questions of one script; what torch has a module for answers them in the run."""
    if target.module:
        return
    branches = branches_of(script, target)
    settled: set[ast.AST] = set(branches.dead)
    for node in script.find(ast.Call):
        if node in settled or inside_f_string(script, node):
            continue
        if script.qualified(node.func) == _CURRENT:
            message = f"use the {target.name} device"
            yield Replace(node, target.device_object, message, modules=target.device_modules)
        elif asks_for_accelerator(script, node) and not only_reported(script, node):
            yield from _answered(branches, node, settled)


def _answered(branches: Branches, call: ast.Call, settled: set[ast.AST]) -> Iterator[Edit]:
    script, target = branches.script, branches.target
    statement = script.statement(call)
    if isinstance(statement, ast.Assert) or (isinstance(statement, ast.If) and demands_gpu(branches, statement, call)):
        yield Delete(statement, f"drop the demand for a GPU: the {target.name} target needs none")
        settled.update(ast.walk(statement))
        return
    choice = _choice(branches, call)
    if choice is not None:
        if not target.names_device and _is_replaced_whole(script, choice):
            return
        kept = choice.body if branches.truth(choice.test) else choice.orelse
        yield Replace(choice, "{}", f"keep what the {target.name} target chooses", parts=(kept,))
        settled.update(ast.walk(choice.test))
    elif not (isinstance(statement, ast.If) and in_test(script, call, statement) and is_harmless(script, statement)):
        yield _decided(branches, call, settled)


def _decided(branches: Branches, call: ast.Call, settled: set[ast.AST]) -> Replace:
    """The answer in place of the largest condition that it decides, or left out where it changes nothing."""
    node: ast.expr = call
    message = f"the {branches.target.name} target answers this"
    parent = branches.script.parents[node]
    while isinstance(parent, (ast.BoolOp, ast.UnaryOp)) and branches.truth(parent) is not None:
        node, parent = parent, branches.script.parents[parent]
    if not isinstance(parent, ast.BoolOp):
        settled.update(ast.walk(node))
        return Replace(node, str(branches.truth(node)), message)
    settled.update(parent.values)
    others = tuple(value for value in parent.values if branches.truth(value) is None)
    word = " and " if isinstance(parent.op, ast.And) else " or "
    if len(others) == 1 and not any(isinstance(inner, ast.Call) for inner in ast.walk(others[0])):
        return Replace(parent, source(branches.script, others[0]), message)
    return Replace(parent, word.join(["{}"] * len(others)), message, parts=others)


def _choice(branches: Branches, call: ast.Call) -> ast.IfExp | None:
    """The outermost conditional expression that the answer decides."""
    found = None
    for parent in branches.script.ancestors(call):
        if isinstance(parent, ast.stmt):
            break
        if isinstance(parent, ast.IfExp) and _decides(branches, call, parent):
            found = parent
    return found


def _decides(branches: Branches, call: ast.Call, choice: ast.IfExp) -> bool:
    return branches.truth(choice.test) is not None and in_test(branches.script, call, choice)


def _is_replaced_whole(script: Script, choice: ast.IfExp) -> bool:
    parent = script.parents[choice]
    return isinstance(parent, ast.Call) and is_device_call(script, parent)


RULE = Rule(
    id="DDP110",
    title="Answer whether there is a GPU",
    why="""A machine with GPUs may be asked to train on its CPUs: then `torch.cuda.is_available()` must not choose a
GPU (P4). On XLA devices the branch meant for accelerators is the right one (X8). Where the answer is only printed,
or does no harm, the line stays.""",
    before="""\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)

init_process_group("gloo")

device = torch.device("cpu")
model = torch.nn.Linear(4, 1).to(device)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
)
