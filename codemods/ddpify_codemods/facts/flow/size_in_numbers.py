"""Where a program computes with the batch size: a rate of each batch, a count of steps for a schedule."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script
from .frames import FlowFacts
from .own_sizes import is_load, means_same, written_sizes

_COMPUTES = (ast.Div, ast.FloorDiv, ast.Mod, ast.Mult)


def computed_with(scripts: Sequence[Script], found: FlowFacts) -> tuple[Script, ast.expr] | None:
    """The first place where a number is multiplied by the batch size of training, or divided by it, and its file;
    None where there is none.

    Args: the program, and what is known of its loops.
    """
    sizes = [each for loader in found.training for each in written_sizes(loader)]
    for script in scripts:
        for node in script.find(ast.BinOp):
            if not isinstance(node.op, _COMPUTES) or _is_given(script, node, found):
                continue
            for side in (node.left, node.right):
                if any(_is_size(script, _plain(side), size, there) for size, there in sizes):
                    return script, node
    return None


def _is_given(script: Script, node: ast.expr, found: FlowFacts) -> bool:
    """Whether it is computed for a loader: `batch_size=2 * args.batch_size`."""
    calls = {loader.call for loaders in found.loops.values() for loader in loaders}
    return any(parent in calls for parent in script.ancestors(node))


def _plain(node: ast.expr) -> ast.expr:
    """`batch_size` of `float(batch_size)`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("float", "int") and len(node.args) == 1:
        return node.args[0]
    return node


def _is_size(script: Script, node: ast.expr, size: ast.expr, there: Script) -> bool:
    """Whether an expression is the size: the same variable of a file, or an option of that name."""
    if isinstance(node, ast.Attribute):
        return isinstance(size, ast.Attribute) and node.attr == size.attr and isinstance(node.ctx, ast.Load)
    is_name = isinstance(node, ast.Name) and is_load(node) and isinstance(size, ast.Name)
    return is_name and script is there and means_same(script, node, size)
