"""What the answer to "is there a GPU?" is used for."""

from __future__ import annotations

import ast

from .devices import Branches
from .script import Script

_HARMLESS = ("torch.cuda.manual_seed", "torch.cuda.empty_cache", "torch.backends.", "print", "logging.", "warnings.")


def in_test(script: Script, node: ast.AST, branching: ast.If | ast.IfExp) -> bool:
    """Whether a node belongs to the condition of a branching."""
    return node is branching.test or branching.test in script.ancestors(node)


def demands_gpu(branches: Branches, branch: ast.If, call: ast.Call) -> bool:
    """Whether a branch ends the script where there is no GPU."""
    if branch.orelse or not in_test(branches.script, call, branch) or not isinstance(branch.test, ast.UnaryOp):
        return False
    last = branch.body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return branches.script.qualified(last.value.func) in ("sys.exit", "exit", "quit")
    return isinstance(last, ast.Raise)


def is_harmless(script: Script, branch: ast.If) -> bool:
    """Whether a branch may stay as it is, since it neither chooses a GPU nor needs one."""
    return not branch.orelse and all(_does_nothing(script, statement) for statement in branch.body)


def _does_nothing(script: Script, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return script.qualified(statement.value.func).startswith(_HARMLESS)
    if isinstance(statement, ast.If):
        return all(_does_nothing(script, inner) for inner in [*statement.body, *statement.orelse])
    return isinstance(statement, ast.Assign) and script.qualified(statement.targets[0]).startswith("torch.backends.")


def only_reported(script: Script, call: ast.Call) -> bool:
    """Whether the answer is only printed, or decides about pinned memory, which does no harm."""
    statement = script.parents[call]
    if isinstance(statement, ast.Assign) and _only_pins_memory(script, statement.targets[0]):
        return True
    for parent in script.ancestors(call):
        if isinstance(parent, ast.keyword) and parent.arg == "pin_memory":
            return True
        if isinstance(parent, ast.Call) and script.qualified(parent.func).startswith(("print", "logging.", "logger.")):
            return True
    return False


def _only_pins_memory(script: Script, name: ast.expr) -> bool:
    uses = [
        script.parents[node]
        for node in script.find(ast.Name)
        if isinstance(name, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Load)
    ]
    return bool(uses) and all(isinstance(use, ast.keyword) and use.arg == "pin_memory" for use in uses)
