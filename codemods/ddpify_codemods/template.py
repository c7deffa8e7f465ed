"""Put expressions into a template, which is code with `{}` where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

_PLACEHOLDER = "ddpify_placeholder_"
OWN_PARENTHESES = (cst.Tuple, cst.GeneratorExp, cst.Yield)
# These read the same without parentheses wherever they stand.
_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.SimpleString,
    cst.Integer,
    cst.Float,
    cst.List,
    cst.Dict,
)


def fill(
    template: str, node: cst.BaseExpression, parts: Sequence[cst.BaseExpression], module: cst.Module
) -> cst.BaseExpression:
    """The expression that a template makes of a node or its parts; the node's parentheses stay around the result."""
    pieces = template.split("{}")
    names = [f"{_PLACEHOLDER}{number}" for number in range(len(pieces) - 1)]
    text = "".join(piece + name for piece, name in zip(pieces, [*names, ""], strict=True))
    filled = cst.parse_expression(text, module.config_for_parsing)
    outer = node if not isinstance(node, OWN_PARENTHESES) else None
    inner = parts or [node.with_changes(lpar=(), rpar=()) if outer else node] * len(names)
    result = filled.visit(_Fill(dict(zip(names, inner, strict=True))))
    assert isinstance(result, cst.BaseExpression)
    if outer is None or not outer.lpar:
        return result
    return result.with_changes(lpar=[*outer.lpar, *result.lpar], rpar=[*result.rpar, *outer.rpar])


_TERMS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Modulo, cst.Power)


class _Fill(cst.CSTTransformer):
    """Put expressions in place of names, in parentheses where they need them."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._values = values

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if isinstance(original_node, cst.Arg):
            value = self._value(original_node.value)
            return updated_node if value is None else updated_node.with_changes(value=value)
        if isinstance(original_node, cst.Lambda):
            body = self._value(original_node.body)
            return updated_node if body is None else updated_node.with_changes(body=body)
        if isinstance(original_node, cst.BinaryOperation) and isinstance(original_node.operator, cst.Add):
            first = self._value(original_node.left)
            if isinstance(first, cst.BinaryOperation) and isinstance(first.operator, _TERMS):  # `a + b` before `+ c`
                return updated_node.with_changes(left=first)
        value = self._value(original_node)
        if value is None or isinstance(value, _ATOMS) or value.lpar:
            return value or updated_node
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def _value(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        return self._values.get(node.value) if isinstance(node, cst.Name) else None
