"""What a script says to Horovod: its functions by their own names, and the arguments that they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .origins import origins
from .script import Script

# The signatures of Horovod 0.28.1 (horovod/torch: mpi_ops.py, functions.py, optimizer.py, compression.py).
_PARAMETERS = {
    "DistributedOptimizer": (
        "optimizer",
        "named_parameters",
        "compression",
        "backward_passes_per_step",
        "op",
        "gradient_predivide_factor",
        "num_groups",
        "groups",
        "sparse_as_dense",
        "process_set",
    ),
    "allgather": ("tensor", "name", "process_set"),
    "allgather_object": ("obj", "name"),
    "allreduce": ("tensor", "average", "name", "compression", "op", "prescale_factor", "postscale_factor"),
    "allreduce_": ("tensor", "average", "name", "op", "prescale_factor", "postscale_factor"),
    "barrier": (),
    "broadcast": ("tensor", "root_rank", "name", "process_set"),
    "broadcast_": ("tensor", "root_rank", "name", "process_set"),
    "broadcast_object": ("obj", "root_rank", "name", "process_set"),
    "broadcast_optimizer_state": ("optimizer", "root_rank", "model"),
    "broadcast_parameters": ("params", "root_rank"),
}


def horovod_name(script: Script, node: ast.AST) -> str:
    """What a name is in Horovod: "rank" for `hvd.rank`, "Compression.fp16"; "" for anything else."""
    if not isinstance(node, ast.Attribute | ast.Name):
        return ""
    name = script.qualified(node)
    for prefix in ("horovod.torch.mpi_ops.", "horovod.torch.functions.", "horovod.torch.", "horovod."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return ""


def calls_of(script: Script, *names: str) -> Iterator[ast.Call]:
    """The calls of some functions of Horovod."""
    return (call for call in script.find(ast.Call) if horovod_name(script, call.func) in names)


def given(script: Script, call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments of a call of Horovod by the names of its parameters; None where they cannot be seen."""
    hidden = any(isinstance(each, ast.Starred) for each in call.args) or any(word.arg is None for word in call.keywords)
    parameters = _PARAMETERS[horovod_name(script, call.func)]
    if hidden or len(call.args) > len(parameters):
        return None
    named = {str(word.arg): word.value for word in call.keywords}
    return dict(zip(parameters, call.args, strict=False)) | named


def is_constant(node: ast.expr | None, *values: object) -> bool:
    """Whether an argument is not given, or is one of some constants."""
    return node is None or (isinstance(node, ast.Constant) and node.value in values)


def wrapped_optimizers(script: Script) -> set[str]:
    """The code of what holds Horovod's optimizers: "optimizer", "self.optimizer"."""
    calls = set(calls_of(script, "DistributedOptimizer"))
    found: set[str] = set()
    for statement in script.find(ast.Assign):
        if statement.value in calls:
            found.update(map(ast.unparse, statement.targets))
    return found


def is_wrapped_optimizer(script: Script, node: ast.expr) -> bool:
    """Whether an expression is an optimizer that Horovod has wrapped."""
    if ast.unparse(node) in wrapped_optimizers(script):
        return True
    return any(each in set(calls_of(script, "DistributedOptimizer")) for each in origins(script, node))


def free_name(script: Script, name: str) -> str:
    """A name that no variable, parameter or attribute of an object's own in a file has."""
    taken = {node.id for node in script.find(ast.Name)} | {node.arg for node in script.find(ast.arg)}
    taken |= {node.attr for node in script.find(ast.Attribute) if ast.unparse(node.value) == "self"}
    while name in taken:
        name += "_"
    return name
