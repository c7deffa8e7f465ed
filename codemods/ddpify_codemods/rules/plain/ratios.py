"""Where sums over ranks are divided by each other: of numbers that all ranks have alike, that leaves the ratio."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from ...facts.counted_among import counted_among
from ...facts.flow.frames import AfterLoop, FlowFacts, Reduction
from ...facts.script import Script
from .words import program_of


def in_ratio(script: Script, node: ast.expr, summed: Mapping[ast.expr, set[Reduction]]) -> bool:
    """Whether an expression stands in a division of sums.

    Args:
        node: it. summed: the expressions that are brought together from the ranks; both sides of the division are so
            many times larger if each of these is a sum. A mean over ranks that all have alike is as large as it was.
    """
    sums = {each for each, reductions in summed.items() if all(one.kind in ("sum", "size") for one in reductions)}
    for parent in script.ancestors(node):
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
            if not _grows_with(parent.left, sums):
                return False
            return _grows_with(parent.right, sums) or _is_count_or_one(script, parent, sums)
        if isinstance(parent, ast.stmt):
            break
    return False


def _is_count_or_one(script: Script, ratio: ast.BinOp, sums: set[ast.expr]) -> bool:
    """Whether something is divided by a count, or by 1 where that is 0, as it then is, too: `hits / max(count, 1)`."""
    call = ratio.right
    if not isinstance(call, ast.Call) or script.qualified(call.func) != "max" or len(call.args) != 2 or call.keywords:
        return False
    counts = [each for each in call.args if not (isinstance(each, ast.Constant) and each.value == 1)]
    if len(counts) != 1 or counts[0] not in sums:
        return False
    parts = [_without_factor(each) for each in ast.walk(ratio.left) if isinstance(each, ast.expr) and each in sums]
    return all(counted_among(program_of(script).scripts, script, each, counts[0]) for each in parts)


def _without_factor(node: ast.expr) -> ast.expr:
    """What a number is so many times: `self.hits` in `100.0 * self.hits`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        if not isinstance(node.left, ast.Constant) and not isinstance(node.right, ast.Constant):
            break
        node = node.right if isinstance(node.left, ast.Constant) else node.left
    return node


def _grows_with(node: ast.expr, sums: set[ast.expr]) -> bool:
    """Whether an expression is so many times larger if some in it are: `2 * hits`, not `hits + 1`."""
    if node in sums:
        return True
    if isinstance(node, ast.UnaryOp):
        return _grows_with(node.operand, sums)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("float", "int") and len(node.args) == 1:
        return _grows_with(node.args[0], sums)
    if not isinstance(node, ast.BinOp):
        return False
    grow = _grows_with(node.left, sums), _grows_with(node.right, sums)
    if isinstance(node.op, ast.Add | ast.Sub):
        return all(grow)
    if isinstance(node.op, ast.Mult):
        return grow[0] != grow[1]
    return isinstance(node.op, ast.Div) and grow == (True, False)


def only_ratios_are_left(script: Script, loop: ast.AST, found: FlowFacts) -> bool:
    """Whether the sums that are brought together after a loop are read in divisions by each other alone."""
    summed = [each for each in found.after if each.kind != "mean" and loop in ast.walk(each.at)]
    reads = {name: list(_reads(script, name, summed)) for name in {each.name for each in summed}}
    sums = {node for nodes in reads.values() for node in nodes}
    declared = {name for node in script.find(ast.Global) for name in node.names}
    return not declared & reads.keys() and all(_divides(script, node, sums) for node in sums)


def _reads(script: Script, name: str, summed: Iterable[AfterLoop]) -> Iterable[ast.Name]:
    """Where a variable is read, other than in the loop that adds it up."""
    ats = [each.at for each in summed if each.name == name]
    inside = {node for at in ats for node in ast.walk(at)}
    scopes = {script.scope(at) for at in ats}
    for node in script.find(ast.Name):
        seen = script.scope(node) in scopes or script.tree in scopes
        if node.id == name and isinstance(node.ctx, ast.Load) and node not in inside and seen:
            yield node


def _divides(script: Script, node: ast.expr, sums: set[ast.Name]) -> bool:
    """Whether a sum is one side of a division, and another sum the other one."""
    parent = script.parents[node]
    is_ratio = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)
    return is_ratio and {parent.left, parent.right} <= sums  # type: ignore[attr-defined]
