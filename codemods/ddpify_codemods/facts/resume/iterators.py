"""What a script takes items of by itself, with next(): where it is made, so that its items can be counted there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..called_modules import last_name, root
from ..origins import sources
from ..script import Script
from .liveness import stored
from .obstacle import CannotResume
from .training import CallGraph, Loop

_DEPTH = 6  # names on the way from a call of next() to where its iterator is made
_OF_MODULES = {"parameters", "named_parameters", "buffers", "modules", "named_modules", "children", "named_children"}
_ITERATORS = {"iter", "enumerate", "zip", "map", "filter", "reversed"}
_REMEDY = "make it by `iter(loader)` before the loop, or loop over it with `for`"

Counted = tuple[Script, ast.expr]


def counted(training: CallGraph, outer: Loop, loop: Loop) -> Iterator[Counted]:
    """The expressions that `next()` takes items of in a loop, and in what it calls.

    Raises:
        CannotResume: it is not seen how an iterator is made, or it could not be made again as it was.
    """
    for node in (inner for part in loop.parts for inner in ast.walk(part)):
        yield from _counted(loop.script, node, outer)
    for function in training.reached(loop.script, loop.parts):
        own = stored(*function.node.body)
        for node in ast.walk(function.node):
            if not (takes_an_item(function.script, node) and _is_name(node, own)):
                yield from _counted(function.script, node, outer)


def takes_an_item(script: Script, node: ast.AST) -> bool:
    """Whether a node is a call of next()."""
    return isinstance(node, ast.Call) and script.qualified(node.func) == "next" and bool(node.args)


def makes_iterator(script: Script, call: ast.Call) -> bool:
    """Whether a call gives an iterator: iter() and the like, or a generator function of the file."""
    name = script.qualified(call.func)
    return name in _ITERATORS or name.startswith("itertools.") or _generates(script, call)


def _counted(script: Script, node: ast.AST, outer: Loop) -> Iterator[Counted]:
    if not takes_an_item(script, node):
        return
    assert isinstance(node, ast.Call)
    given = node.args[0]
    if _is_made_for_it(script, given):
        return
    makers = list(_makers(script, given))
    around = set(ast.walk(outer.node))
    assigned = stored(*outer.node.body)
    iterables = [each.args[0] if _is_iter(script, each) else each for each in makers]
    if not makers or len({ast.dump(each) for each in iterables}) > 1:
        raise CannotResume(script, node, f"it is not seen what next({ast.unparse(given)}) takes items of", _REMEDY)
    for maker, iterable in zip(makers, iterables, strict=True):
        in_loop = maker in around
        if in_loop and (maker is iterable or _is_iterator(script, iterable)):
            text = "an iterator is made in the loop that trains, which could not be made again as it was"
            raise CannotResume(script, maker, text, _REMEDY)
        if root(iterable) in assigned and not (in_loop and len(makers) == 1):
            text = f"next() takes items of {root(iterable)}, which is assigned in the loop that trains"
            raise CannotResume(script, maker, text, _REMEDY)
        yield script, iterable


def _is_name(call: ast.AST, own: frozenset[str]) -> bool:
    """Whether the iterator of a call of next() is made where it is used."""
    return isinstance(call, ast.Call) and isinstance(call.args[0], ast.Name) and call.args[0].id in own


def _is_made_for_it(script: Script, given: ast.expr) -> bool:
    """Whether an iterator is made in the call of next() itself: `next(iter(loader))`."""
    if not isinstance(given, ast.Call):
        return False
    if last_name(given.func) in _OF_MODULES:
        return True
    return makes_iterator(script, given) and not any(_is_iterator(script, each) for each in given.args)


def _is_iter(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and script.qualified(node.func) == "iter" and len(node.args) == 1


def _is_iterator(script: Script, node: ast.expr, depth: int = _DEPTH) -> bool:
    if isinstance(node, ast.GeneratorExp) or (isinstance(node, ast.Call) and makes_iterator(script, node)):
        return True
    return bool(depth) and any(_is_iterator(script, each, depth - 1) for each in _behind(script, node))


def _makers(script: Script, node: ast.expr, depth: int = _DEPTH) -> Sequence[ast.Call]:
    """The calls that may make an iterator; none if that is not seen."""
    if isinstance(node, ast.Call):
        return [node] if makes_iterator(script, node) else []
    found: list[ast.Call] = []
    for each in _behind(script, node) if depth else ():
        makers = _makers(script, each, depth - 1)
        if not makers:
            return []
        found += [maker for maker in makers if maker not in found]
    return found


def _behind(script: Script, node: ast.expr) -> list[ast.expr]:
    return [] if isinstance(node, ast.Call) else sources(script, node)


def _generates(script: Script, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name):
        return False
    functions = (node for node in script.find(ast.FunctionDef) if node.name == last_name(call.func))
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for each in functions for node in ast.walk(each))
