"""What the constructor of a dataclass takes, and other classes whose fields are written as annotations."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Field:
    """A field. given: by its place or its name, by its name alone, or not at all. is_kept: whether an object has it, as
    it has no InitVar, which `__post_init__` takes."""

    name: str
    given: Literal["anyhow", "by_name", "never"] = "anyhow"
    is_kept: bool = True


def own_fields(cls: ast.ClassDef) -> list[Field]:
    """The fields that a class has itself, in their order."""
    found: list[Field] = []
    by_name = any(_says(each, "kw_only", True) for each in cls.decorator_list)
    for each in cls.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        kind = _kind(each.annotation)
        if kind == "KW_ONLY":
            by_name = True
        elif kind != "ClassVar":
            named = _says(each.value, "kw_only", True) or (by_name and not _says(each.value, "kw_only", False))
            never = _says(each.value, "init", False)
            given: Literal["anyhow", "by_name", "never"] = "never" if never else "by_name" if named else "anyhow"
            found.append(Field(each.target.id, given, kind != "InitVar"))
    return found


def _kind(annotation: ast.expr) -> str:
    """`ClassVar` of `typing.ClassVar[int]`, in a string as well."""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return str(text).partition("[")[0].strip().rpartition(".")[2]


def _says(node: ast.expr | None, name: str, value: bool) -> bool:
    """Whether a call such as `field(init=False)` says so."""
    words = node.keywords if isinstance(node, ast.Call) else []
    return any(
        each.arg == name and isinstance(each.value, ast.Constant) and each.value.value is value for each in words
    )
