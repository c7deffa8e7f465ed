"""Members of the enumerations that a program defines, by their names: `Kind.FIRST.name`."""

from __future__ import annotations

import ast

from .values import Class, Value

_ENUMERATIONS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})


def member_name(owner: Value, member: str) -> Value | None:
    """The name of a member, which is a text that is known; None for others.

    Args: what the member is taken of; what it is called there, which is another name of a member that has its value.
    """
    cls = next(iter(owner.things)) if len(owner.things) == 1 else None
    if not isinstance(cls, Class) or {cls.script.qualified(base) for base in cls.node.bases} - _ENUMERATIONS:
        return None
    plain = all(isinstance(each, ast.Assign | ast.Pass) or _is_text(each) for each in cls.node.body)
    members = [each for each in cls.node.body if isinstance(each, ast.Assign)]
    values = [ast.unparse(each.value) for each in members]
    written = all(_is_written(each.value) for each in members) and len({*values}) == len(values)
    names = [ast.unparse(target) for each in members for target in each.targets]
    is_plain = plain and written and bool(cls.node.bases) and not cls.node.keywords and not cls.node.decorator_list
    is_one = names.count(member) == 1 and len(names) == len(members)  # `A = B = 1` is one member
    return Value(constant=member, host=True) if is_plain and is_one else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_written(node: ast.expr) -> bool:
    """Whether a value is one text or whole number, or a tuple of these: 1.0 and True would be another name of 1."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(each, ast.Constant) and type(each.value) in (int, str) for each in parts)
