"""Tuples whose entries have names: `namedtuple("Outputs", ["logits", "features"])`, `class Outputs(NamedTuple)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..script import Script
from .bound_arguments import spread_out
from .values import SAME, Class, Items, Value, join, of


def named_tuple(script: Script, call: ast.Call) -> Class | None:
    """The class that `namedtuple(…)` makes; None where its fields are not written there."""
    given = call.args[1] if len(call.args) == 2 and not call.keywords else None
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        names = given.value.replace(",", " ").split()
    elif isinstance(given, ast.List | ast.Tuple):
        names = [str(each.value) for each in given.elts if isinstance(each, ast.Constant)]
    else:
        return None
    if isinstance(given, ast.List | ast.Tuple) and len(names) != len(given.elts):
        return None
    code = "".join(f"    {name}: object\n" for name in names)
    try:
        (cls,) = ast.parse(f"class Fields(NamedTuple):\n{code or '    pass'}").body
    except SyntaxError:
        return None
    return Class(cls, script) if isinstance(cls, ast.ClassDef) else None


def instance(cls: Class, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What a call of such a class makes; None for other classes, and for one with methods of its own."""
    fields = fields_of(cls)
    if fields is None or len(args) > len(fields):
        return None
    known: dict[object, Value] = dict(given_to_fields(fields, args, keywords).items())
    return of(Items("tuple", {**dict(enumerate(known.values())), **known}))


def given_to_fields(fields: Sequence[str], args: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """What the fields of a record get in their order, by name, or by `**values`."""
    spread = spread_out(keywords.get("**"))
    by_mapping = {name: join(SAME, each) if name in spread.perhaps else each for name, each in spread.known.items()}
    given = {**by_mapping, **dict(zip(fields, args, strict=False)), **keywords}
    return {name: given.get(name, spread.unseen) for name in fields}


def fields_of(cls: Class) -> list[str] | None:
    """The names of the entries that such a class has; None for other classes, and for one with methods of its own."""
    is_one = any(ast.unparse(base).rpartition(".")[2] == "NamedTuple" for base in cls.node.bases)
    others = [each for each in cls.node.body if not isinstance(each, ast.AnnAssign | ast.Expr | ast.Pass)]
    fields = [ast.unparse(each.target) for each in cls.node.body if isinstance(each, ast.AnnAssign)]
    return fields if is_one and not others else None
