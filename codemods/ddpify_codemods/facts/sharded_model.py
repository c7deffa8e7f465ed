"""Where a script hands its model on, once torch's fully_shard leaves each rank a part of it.

What the model does as a whole (its forward, its mode, its state) is right on every rank. Whoever else gets hold of its
layers or parameters has a part of each, so every use is one that is known here, or is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .called_modules import last_name
from .fully_sharded import is_before, is_clipped, is_counted
from .origins import origins
from .script import Script

_METHODS = frozenset({"train", "eval", "zero_grad", "training"})
_SHOWN = frozenset({"print", "repr", "str", "type", "isinstance", "id"})
_PLACES = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Compare, ast.IfExp, ast.keyword)


def strange_uses(
    script: Script, made: set[ast.expr], trained: set[ast.AST], at: ast.stmt
) -> Iterator[tuple[ast.expr, str]]:
    """The uses of a model after the statement `at` that are right for the whole of it alone, and why.

    Args: the calls that make the model; the expressions that build its optimizers; where it is sharded.
    """
    handed = {inner for each in trained for inner in ast.walk(each)}
    states: set[ast.expr] = set()
    for node in script.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if node in handed or is_before(script, node, at) or not made.intersection(origins(script, node)):
            continue
        parent = script.parents[node]
        if isinstance(parent, ast.Attribute):
            call = script.parents[parent]
            if isinstance(call, ast.Call) and call.func is parent and parent.attr == "state_dict" and not call.args:
                states.add(call)
            else:
                why = _of_attribute(script, parent)
                if why:
                    yield parent, why
        elif isinstance(parent, ast.Call):
            if parent.func is not node and not _is_followed(script, parent):
                yield node, f"{ast.unparse(parent.func)} is given a model of which each process has a part"
        elif isinstance(parent, ast.Return):
            function = script.scope(parent)
            if not isinstance(script.parents.get(function), ast.Module):
                yield node, "the model is returned, and not followed from there"
        elif not isinstance(parent, _PLACES) or (isinstance(parent, ast.keyword) and not _is_followed(script, parent)):
            yield node, "the model is kept where it is not followed, and each process has a part of it"
    yield from _looks(script, states)


def _of_attribute(script: Script, node: ast.Attribute) -> str:
    """Why an attribute of the model cannot be left; "" if it can."""
    call = script.parents[node]
    called = call if isinstance(call, ast.Call) and call.func is node else None
    if node.attr in _METHODS or not isinstance(node.ctx, ast.Load):
        return ""
    if called and node.attr == "load_state_dict":
        assigns = any(word.arg in ("assign", None) for word in called.keywords)
        return "load_state_dict(assign=True) puts whole parameters in the place of parts" if assigns else ""
    if called and node.attr in ("parameters", "named_parameters"):
        known = is_clipped(script, called) or is_counted(script, called)
        return "" if known else f"`{ast.unparse(called)}` is read, and each process has a part of each"
    what = "called" if called else "read"
    return f"`{ast.unparse(node)}` is {what}, and each process has a part of each parameter"


def _is_followed(script: Script, node: ast.Call | ast.keyword) -> bool:
    """Whether a call shows the model only, or is of a function of this file, in which it is followed."""
    call = script.parents[node] if isinstance(node, ast.keyword) else node
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Name) and call.func.id in _SHOWN:
        return True
    name = last_name(call.func)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [each for each in script.nodes if isinstance(each, kinds) and each.name == name]
    return len(found) == 1 and not any(isinstance(each, ast.Starred) for each in call.args)


def _looks(script: Script, states: set[ast.expr]) -> Iterator[tuple[ast.expr, str]]:
    """Where a script looks into the model's state: in one process it sees the parameters themselves."""
    for node in script.nodes:
        looked = []
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
            looked = [node.value]
        elif isinstance(node, ast.For | ast.comprehension):
            looked = [node.iter]
        for each in looked:
            if states.intersection(origins(script, each)):
                yield each, "the model's state is looked into, which the next step would change: deepcopy it as a whole"
