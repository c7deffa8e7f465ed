"""Loops over the batches of training in one turn, and of an evaluation that is not divided in another, as over phases:
what they leave behind is brought together where they have trained."""

from __future__ import annotations

import ast

from ...facts.drawing_samplers import drawing_sampler
from ...facts.flow.loops import run_over_by
from ...facts.loaders import names_in
from ...facts.script import Script
from .words import program_of

_LOOPS = ast.For | ast.While
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def mixed_loops(script: Script) -> list[ast.For]:
    """The loops of a file over loaders of training and of evaluations that are not divided."""
    followed = program_of(script).followed
    found = []
    for loop, loaders in followed.found.loops.items():
        both = {followed.status.get(each) for each in loaders} >= {"training", "whole"}
        if both and loop in script.parents and isinstance(loop, ast.For):
            found.append(loop)
    return found


def loader_of(script: Script, loop: ast.For) -> ast.expr | None:
    """The expression by which a loader comes to such a loop, whose sampler tells whether it is one of training; None
    where it does not."""
    followed = program_of(script).followed
    loaders = followed.found.loops[loop]
    trained = [each for each in loaders if followed.status.get(each) == "training"]
    if any(isinstance(each, ast.Global | ast.Nonlocal) for each in ast.walk(script.scope(loop))):
        return None  # what it leaves may be read elsewhere
    if any(each.source is not None or drawing_sampler(each.script, each.call) is not None for each in trained):
        return None
    for node in run_over_by(script, loop):
        if isinstance(node, ast.expr) and followed.found.over.get(node, set()) >= loaders and _is_plain(node):
            return node
    return None


def asked_at(script: Script, node: ast.expr | ast.stmt) -> tuple[ast.For, str] | None:
    """The one of these loops that something is left by, where it is read, or that is a statement itself; and the name
    of what tells there whether it has trained. None where there is none."""
    for loop in mixed_loops(script):
        if loader_of(script, loop) is not None and (node is loop or _is_in_its_turn(script, loop, node)):
            return loop, _name(script, loop)
    return None


def told_before(script: Script, loop: ast.For) -> str:
    """The code that tells, before such a loop, whether it trains."""
    loader = loader_of(script, loop)
    assert loader is not None
    return f"{_name(script, loop)} = isinstance({ast.unparse(loader)}.sampler, DistributedSampler)"


def _name(script: Script, loop: ast.For) -> str:
    taken, name = {*names_in(script)}, "is_divided"
    for other in mixed_loops(script):
        while name in taken:
            name += "_"
        if other is loop:
            break
        taken.add(name)
    return name


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression may be written again: names, attributes, and entries by names and constants."""
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value) and isinstance(node.slice, ast.Name | ast.Constant)
    return isinstance(node, ast.Name)


def _is_in_its_turn(script: Script, loop: ast.For, node: ast.AST) -> bool:
    """Whether something is in a loop, or behind it in the same turn of what is around it, and reads nothing that a
    turn before may have left."""
    inside, turn = set(ast.walk(loop)), _turn(script, loop)
    if script.scope(node) is not script.scope(loop) or turn not in (*script.ancestors(node), script.tree):
        return False
    if node not in inside and _line(node) <= (loop.end_lineno or 0):
        return False
    if any(isinstance(each, ast.Attribute) and _is_kept(each) for each in ast.walk(node)):
        return False
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    stores = (each for each in ast.walk(turn) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return not any(each.id in read and each not in inside and each.lineno >= _line(node) for each in stores)


def _turn(script: Script, loop: ast.For) -> ast.AST:
    """The loop around a loop in its function, or that function, or the file."""
    around = (each for each in script.ancestors(loop) if isinstance(each, _LOOPS | _FUNCTIONS))
    return next(around, script.tree)


def _is_kept(node: ast.Attribute) -> bool:
    """Whether it is something that an object keeps from turn to turn: `self.outputs`."""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id == "self"


def _line(node: ast.AST) -> int:
    return node.lineno  # type: ignore[attr-defined, no-any-return]
