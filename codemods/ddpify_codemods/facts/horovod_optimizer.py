"""What hvd.DistributedOptimizer is given: the model, and what it does otherwise than DistributedDataParallel."""

from __future__ import annotations

import ast

from .horovod import horovod_name, is_constant
from .optimizers import optimizers
from .origins import origins, sources
from .script import Script


def difference(script: Script, words: dict[str, ast.expr]) -> str:
    """What Horovod's optimizer does otherwise than DistributedDataParallel, given some arguments; "" for nothing."""
    operation, compression = words.get("op"), words.get("compression")
    if operation is not None:
        kinds = _names(script, operation)
        if kinds != {"Average"} and (kinds != {"Average", "Adasum"} or asks_for_adasum(script, operation) is None):
            return f"gradients are combined by {' or '.join(sorted(kinds)) or 'what cannot be seen'}, not averaged"
    if compression is not None and not _names(script, compression) <= {"Compression.fp16", "Compression.none"}:
        return "how gradients are compressed cannot be seen"
    if not is_constant(words.get("sparse_as_dense"), False):
        return "sparse gradients are made dense"
    return "it is for some of the processes" if "process_set" in words else ""


def _names(script: Script, node: ast.expr) -> set[str]:
    """What an expression may be, in Horovod's words; "" for what is not its."""
    return {horovod_name(script, each) for each in origins(script, node) if not sources(script, each)}


def asks_for_adasum(script: Script, operation: ast.expr) -> ast.expr | None:
    """The option that asks for Adasum: `op=hvd.Adasum if args.use_adasum else hvd.Average`."""
    for origin in origins(script, operation):
        if isinstance(origin, ast.IfExp) and horovod_name(script, origin.body) == "Adasum":
            return origin.test if horovod_name(script, origin.orelse) == "Average" else None
    return None


def trained_model(script: Script, named: ast.expr | None, optimizer: ast.expr) -> ast.expr | None:
    """The model whose parameters are named, or given to the optimizer."""
    if named is not None:
        if isinstance(named, ast.Call) and ast.unparse(named.func) == "list" and named.args:
            named = named.args[0]
        func = named.func if isinstance(named, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "named_parameters":
            return None
        return func.value if _is_plain(func.value) else None
    made = set(origins(script, optimizer))
    bases = list(dict.fromkeys(base for each in optimizers(script) if each.call in made for base in each.bases))
    plain = len(bases) == 1 and not bases[0].each_of and _is_plain(bases[0].node)
    return bases[0].node if plain else None


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self")
