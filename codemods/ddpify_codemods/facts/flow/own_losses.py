"""Losses that objects make for themselves: `self.criterion(out, y)` of a class that has its own is no call of another
loss by the same name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..script import Script

_APART = frozenset({"torch.nn.Module", "object"})  # what a class is derived from that gives it no such attribute
_BY_NAME = frozenset({"setattr", "vars", "__dict__", "__setattr__", "add_module", "register_module"})


def calls_its_own(scripts: Sequence[Script], call: ast.Call, made: ast.Call) -> bool:
    """Whether a call is of an attribute of `self` that holds nothing but what its own class makes, and not `made`."""
    script = next(each for each in scripts if call in each.parents)
    named = call.func
    if not isinstance(named, ast.Attribute) or not isinstance(named.value, ast.Name) or named.value.id != "self":
        return False
    cls = next((each for each in script.ancestors(call) if isinstance(each, ast.ClassDef)), None)
    if cls is None or not _is_alone(scripts, script, cls) or _may_be_set_by_name(scripts, named.attr):
        return False
    return all(
        isinstance(value, ast.Call) and value is not made and _is_loss(there.qualified(value.func))
        for there, value in _stored(scripts, cls, named.attr)
    )


def _is_loss(name: str) -> bool:
    return name.startswith("torch.nn.") and name.endswith("Loss")


def _is_alone(scripts: Sequence[Script], script: Script, cls: ast.ClassDef) -> bool:
    """Whether a class has the attributes of no other class, and no other one has its own."""
    derived = (base for each in scripts for other in each.find(ast.ClassDef) for base in other.bases)
    named = (ast.unparse(base).rpartition(".")[2] for base in derived)
    apart = not cls.keywords and not cls.decorator_list and all(script.qualified(each) in _APART for each in cls.bases)
    return apart and cls.name not in named


def _may_be_set_by_name(scripts: Sequence[Script], attribute: str) -> bool:
    """Whether an attribute may be set in a way that does not show it: by a text, or by a name of the class itself."""
    for script in scripts:
        for node in script.find(ast.Name, ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            in_class = isinstance(script.parents.get(script.statement(node)), ast.ClassDef)
            if name in _BY_NAME or (in_class and name == attribute and not isinstance(node.ctx, ast.Load)):
                return True
    return False


def _stored(scripts: Sequence[Script], cls: ast.ClassDef, attribute: str) -> Iterator[tuple[Script, ast.expr | None]]:
    """What an attribute of a class's objects is given; None for what is not seen. Another class's `self` is none."""
    for script in scripts:
        for node in script.find(ast.Attribute):
            if node.attr != attribute or isinstance(node.ctx, ast.Load):
                continue
            around = next((each for each in script.ancestors(node) if isinstance(each, ast.ClassDef)), cls)
            if around is not cls and isinstance(node.value, ast.Name) and node.value.id == "self":
                continue
            parent = script.parents[node]
            yield script, parent.value if isinstance(parent, ast.Assign) and parent.targets == [node] else None
