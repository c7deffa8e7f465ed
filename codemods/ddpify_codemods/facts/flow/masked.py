"""Masks of tensors: `x[x > 0.5] = 0`, which changes each sample by itself, other than `x[indices] = 0`."""

from __future__ import annotations

import ast

from ..script import Script

_ASKS = frozenset({"eq", "ne", "gt", "ge", "lt", "le", "bool", "isnan", "isinf", "isfinite", "isclose"})
_TOGETHER = frozenset({"logical_and", "logical_or", "logical_not", "logical_xor"})


def is_mask(script: Script, node: ast.expr) -> bool:
    """Whether an index is a tensor of true and false: a comparison, several of these, or a name for one."""
    if isinstance(node, ast.Compare):
        return not any(isinstance(each, ast.Is | ast.IsNot | ast.In | ast.NotIn) for each in node.ops)
    if isinstance(node, ast.BinOp):
        joins = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
        return joins and is_mask(script, node.left) and is_mask(script, node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and is_mask(script, node.operand)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _ASKS | _TOGETHER
    if not isinstance(node, ast.Name):
        return False
    makes = [script.parents[each] for each in script.stores.get((script.scope(node), node.id), ())]
    made = [each.value for each in makes if isinstance(each, ast.Assign)]
    others = (value for value in made if not (isinstance(value, ast.Name) and value.id == node.id))
    return bool(made) and len(made) == len(makes) and all(is_mask(script, value) for value in others)
