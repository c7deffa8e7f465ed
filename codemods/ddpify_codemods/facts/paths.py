"""Which objects are seen to be paths of pathlib, whose methods other classes have too: `path.rename(last)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from .origins import origins_beyond
from .script import Script

_OF_PATHS = frozenset(
    {"with_suffix", "with_name", "with_stem", "joinpath", "resolve", "absolute", "expanduser", "relative_to"}
    | {"rename", "replace", "parent", "parents", "glob", "rglob", "iterdir"}
)
_SAME = frozenset({"sorted", "list", "next", "reversed", "max", "min"})  # of paths


def is_path(script: Script, node: ast.expr) -> bool:
    """Whether an object is made by pathlib, of a path, or annotated as one."""
    return any(
        (isinstance(each, ast.Call) and script.qualified(each.func).startswith("pathlib."))
        or any(_says_path(script, said) for said in _annotations(script, each))
        for each in origins_beyond(script, node, partial(_made_of, script))
    )


def _made_of(script: Script, node: ast.expr) -> list[ast.expr]:
    """The paths of which something is one, if it is: `folder` of `folder / "a"` and of `folder.with_suffix("")`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [node.left, node.right]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call):
        if script.qualified(node.func) in _SAME:
            return node.args[:1]
        node = node.func
    return [node.value] if isinstance(node, ast.Attribute) and node.attr in _OF_PATHS else []


def _annotations(script: Script, node: ast.expr) -> Iterator[ast.expr]:
    """What a name is said to be: as a parameter of its function, or where it is assigned, also as a field."""
    name = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    scope = script.scope(node)
    for said in (each for each in script.nodes if name and isinstance(each, (ast.arg, ast.AnnAssign))):
        if isinstance(said, ast.arg):
            here = said.arg == name and script.parents[script.parents[said]] is scope
        else:
            owner = script.parents[said]
            field = isinstance(owner, ast.ClassDef) and owner in script.ancestors(node) and name.startswith("self.")
            here = name in (ast.unparse(said.target), f"self.{ast.unparse(said.target)}" if field else None)
            here = here and (field or script.scope(said) is scope or isinstance(node, ast.Attribute))
        if here and said.annotation is not None:
            yield said.annotation


def _says_path(script: Script, annotation: ast.expr) -> bool:
    """Whether an annotation is a path, or may be one: `Path`, `str | Path`, `Optional[Path]`, `"Path"`."""
    if isinstance(annotation, ast.BinOp):
        return _says_path(script, annotation.left) or _says_path(script, annotation.right)
    if isinstance(annotation, ast.Subscript):
        given = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        of_one = script.qualified(annotation.value).endswith(("Optional", "Union"))
        return of_one and any(_says_path(script, each) for each in given)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return script.imported.get(annotation.value, annotation.value) in ("pathlib.Path", "pathlib.PosixPath")
    return script.qualified(annotation) in ("pathlib.Path", "pathlib.PosixPath")
