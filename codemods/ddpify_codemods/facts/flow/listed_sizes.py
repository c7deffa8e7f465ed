"""The sizes of a tensor in a list that has a name: `shape = [x.size(0), 1, 4]`, then `torch.ones(shape)`."""

from __future__ import annotations

import ast

from .scopes import FUNCTIONS, parameters_of

_COMPUTED = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Call),
    *(ast.operator, ast.unaryop, ast.expr_context),
)
_TAKE = frozenset(
    {"ones", "zeros", "full", "empty", "rand", "randn", "reshape", "view", "expand", "new_zeros", "new_ones"}
)


def listed_sizes(function: ast.AST, node: ast.expr) -> ast.expr:
    """The list that a name stands for where tensors are made of it alone, and what it is written with stays as it is;
    the expression itself for others."""
    if not isinstance(node, ast.Name) or not isinstance(function, FUNCTIONS):
        return node
    made = [each for each in function.body if isinstance(each, ast.Assign) and _names(each) == [node.id]]
    if len(made) != 1 or not isinstance(made[0].value, ast.List) or not _is_computed(made[0].value, function):
        return node
    parts = [*ast.walk(function)]
    taken = {part for call in parts if _takes(call) for part in call.args[:2]}  # type: ignore[attr-defined]
    uses = {part for part in parts if isinstance(part, ast.Name) and part.id == node.id}
    if uses - taken - {*made[0].targets}:
        return node
    later = (part for each in function.body[function.body.index(made[0]) :] for part in ast.walk(each))
    stored = {ast.unparse(part) for part in later if not isinstance(getattr(part, "ctx", ast.Load()), ast.Load)}
    return node if stored & {ast.unparse(part) for part in ast.walk(made[0].value)} else made[0].value


def _is_computed(sizes: ast.List, function: ast.AST) -> bool:
    """Whether sizes are computed from what the function has been given, or has made."""
    parts = [part for each in sizes.elts for part in ast.walk(each)]
    asked = [part.func for part in parts if isinstance(part, ast.Call)]
    own = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    own |= {*parameters_of(function)}
    return (
        all(isinstance(part, _COMPUTED) for part in parts)
        and all(isinstance(each, ast.Attribute) and each.attr == "size" for each in asked)
        and {part.id for part in parts if isinstance(part, ast.Name)} <= own
        and not any(isinstance(part, ast.Global | ast.Nonlocal) for part in ast.walk(function))
    )


def _takes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKE


def _names(node: ast.Assign) -> list[str]:
    return [ast.unparse(each) for each in node.targets]
