"""Where loops over training loaders give tensors the batch size by its name: `torch.ones(batch_size, 1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ..script import Script
from .comparisons import batch_sizes
from .frames import FlowFacts
from .values import Loader

# Every argument is a size, or the first one has them all.
_OF_SIZES = frozenset({"ones", "zeros", "rand", "randn", "empty", "new_zeros", "new_ones", "new_empty"})
_LAYOUTS = frozenset({"view", "reshape", "expand", "repeat", "resize_"})


def own_sizes(found: FlowFacts, status: Mapping[Loader, str]) -> dict[ast.expr, Loader]:
    """The expressions that are a rank's part of the batch size where they stand, and the loader whose.

    Args:
        found: what is known of the loops of a program. status: how each loader is divided.
    """
    sizes: dict[ast.expr, Loader] = {}
    for loop, loaders in found.loops.items():
        if {status.get(each) for each in loaders} != {"training"}:
            continue
        for loader in loaders:
            script = loader.script
            known = {ast.unparse(each) for each in batch_sizes(loader) if _has_one_meaning(script, each)}
            if known and loop in script.parents:
                sizes |= {node: loader for node in _given_sizes(loop) if ast.unparse(node) in known}
    return sizes


def _given_sizes(loop: ast.AST) -> Iterator[ast.expr]:
    """What tensors are given as sizes in a loop."""
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = [word.value for word in call.keywords if word.arg == "size"]
        if name in _OF_SIZES | _LAYOUTS:
            given += call.args
        elif name in ("full", "new_full"):
            given += call.args[:1]
        elif name in ("normal", "uniform", "randint"):  # behind two numbers
            given += call.args[2:3] or [each for each in call.args[1:] if isinstance(each, ast.Tuple)]
        elif name.endswith("Tensor"):
            yield from call.args  # a list would be what it holds
        for each in given:
            yield from each.elts if isinstance(each, ast.Tuple | ast.List) else [each]


def _has_one_meaning(script: Script, size: ast.expr) -> bool:
    """Whether a name, or an attribute of one, is bound once in a file."""
    base = size
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return False
    bound = [node for node in script.find(ast.Name) if node.id == base.id and isinstance(node.ctx, ast.Store)]
    given = [node for node in script.find(ast.arg) if node.arg == base.id]
    imported = [each for at in script.imports for each in at.names if (each.asname or each.name) == base.id]
    changed = (node for node in script.find(ast.Attribute) if isinstance(node.ctx, ast.Store))
    code = ast.unparse(size)
    return len([*bound, *given, *imported]) == 1 and all(ast.unparse(each) != code for each in changed)
