"""What is put into the groups of an optimizer that is made, behind its back: `optimizer.param_groups[0]["params"]`."""

from __future__ import annotations

import ast

from .values import Items, OptimizerValue, Parameters, Value

OTHERS = "an optimizer gets parameters here in its param_groups, whose model is not followed"
_PUTS_IN = frozenset({"append", "extend", "insert"})


def is_stored(target: ast.expr, owner: Value) -> bool:
    """Whether an assignment changes what an optimizer trains, not what with: `group["lr"] = 0.1`.

    Args: what is assigned to; what it is an attribute or an entry of.
    """
    if isinstance(target, ast.Attribute):
        return target.attr == "param_groups" and bool(owner.only(OptimizerValue))
    if not isinstance(target, ast.Subscript) or not _are_groups(owner):
        return False
    of = target.value
    of_all = isinstance(of, ast.Attribute) and of.attr == "param_groups"
    return of_all or _is_params(target.slice) or (isinstance(of, ast.Subscript) and _is_params(of.slice))


def is_added(added: Value, node: ast.AugAssign, before: Value) -> bool:
    """Whether a list of what an optimizer trains gets longer: `params += [head.scale]`; no tensor that is in it.

    Args: what is added; where; what the list is.
    """
    several = isinstance(node.value, ast.List | ast.ListComp) or bool(added.only(Items))
    return several and _are_groups(before) and not isinstance(node.target, ast.Subscript)


def is_put_into(name: str, node: ast.Call, owner: Value) -> bool:
    """Whether the call of a method changes what an optimizer trains: `group["params"].append(head.scale)`."""
    if not _are_groups(owner):
        return False
    dicts = [each for each in node.args if isinstance(each, ast.Dict)]
    words = [key for each in dicts for key in each.keys if key is not None and _is_params(key)]
    is_told = bool(words) or any(word.arg == "params" for word in node.keywords)
    return name in _PUTS_IN or (name == "update" and is_told)


def _are_groups(value: Value) -> bool:
    return any(isinstance(each, Parameters) and each.groups for each in value.things)


def _is_params(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value == "params"
