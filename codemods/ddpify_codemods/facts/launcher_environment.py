"""What torchrun tells a process through its environment, and where a script reads it."""

from __future__ import annotations

import ast

from .origins import origins, sources
from .script import Script

# Each variable, and what XLA's runtime says instead.
VARIABLES = {
    "RANK": "xr.global_ordinal()",
    "WORLD_SIZE": "xr.world_size()",
    "LOCAL_RANK": "xr.local_ordinal()",
    "LOCAL_WORLD_SIZE": "xr.local_device_count()",
}
# How the variables of launchers begin that set none of these.
_OTHERS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_")
_READS = {"os.environ.get", "os.getenv"}


def read_variable(script: Script, node: ast.AST) -> str:
    """The variable that an expression reads or looks for; "" for anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return variable_of(script, node)
    if isinstance(node, ast.Call) and script.qualified(node.func) in _READS and node.args:
        return _known(node.args[0])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In):
        return _known(node.left) if script.qualified(node.comparators[0]) == "os.environ" else ""
    return ""


def variable_of(script: Script, node: ast.Subscript) -> str:
    """The variable that `os.environ[…]` names, whether it is read or set."""
    return _known(node.slice) if script.qualified(node.value) == "os.environ" else ""


def _known(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) and node.value in VARIABLES else ""


def of_other_launcher(node: ast.AST) -> str:
    """The variable of srun or mpirun that a string names; "" for anything else."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text if text.startswith(_OTHERS) else ""


def is_read_from(script: Script, node: ast.expr, variable: str) -> bool:
    """Whether a number is one that torchrun has said in the environment."""
    found = [each for each in origins(script, node) if not sources(script, each)]
    given = (each.args[0] if isinstance(each, ast.Call) and ast.unparse(each.func) == "int" else each for each in found)
    return bool(found) and all(read_variable(script, each) == variable for each in given)
