"""Samples that a collate function puts one behind the other, and where each begins: `torch.cat(texts)`, offsets."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ..script import Script

_TENSORS = frozenset({"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor"})


@dataclass(frozen=True)
class Concatenated:
    """A list of samples in one tensor, one behind the other."""

    samples: str


@dataclass(frozen=True)
class Offsets:
    """Where each sample of a list begins in such a tensor."""

    samples: str


def offsets(script: Script, function: ast.AST, node: ast.Call) -> Offsets | None:
    """What `torch.tensor([0] + lengths[:-1]).cumsum(0)` tells; None for other calls."""
    summed = _summed(script, node)
    if summed is None:
        return None
    if isinstance(summed, ast.Call) and script.qualified(summed.func) in _TENSORS and summed.args:
        summed = summed.args[0]
    cut, inner = _without_last(summed)
    name = ""
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and ast.unparse(inner.left) == "[0]":
        more, lengths = _without_last(inner.right)
        name = _measured(function, lengths) if cut != more else ""
    elif cut and isinstance(inner, ast.Name):
        name = _filled(function, inner, "[0]")
    return Offsets(name) if name else None


def _summed(script: Script, node: ast.Call) -> ast.expr | None:
    """What a call of cumsum along the first dimension adds up."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "cumsum":
        return None
    is_function = script.qualified(node.func) == "torch.cumsum"
    given = list(node.args)
    summed = given.pop(0) if is_function and given else node.func.value
    along = [*given, *(word.value for word in node.keywords)]
    zero = len(along) == 1 and ast.unparse(along[0]) == "0" and all(word.arg == "dim" for word in node.keywords)
    return summed if zero else None


def _without_last(node: ast.expr) -> tuple[bool, ast.expr]:
    """Whether an expression leaves the last entry out, `lengths[:-1]`, and of what."""
    cut = isinstance(node, ast.Subscript) and ast.unparse(node.slice) == ":-1"
    return cut, node.value if cut else node  # type: ignore[attr-defined]


def _measured(function: ast.AST, node: ast.expr) -> str:
    """The list of samples whose lengths an expression holds; "" for others."""
    if isinstance(node, ast.Name):
        values = _values(function, node.id, node.lineno)
        if values == ["[]"]:
            return _filled(function, node, "[]")
        known = len(values) == 1 and values[0] and not _uses(function, node.id)
        return _measured(function, ast.parse(values[0], mode="eval").body) if known else ""
    text, name = ast.unparse(node), ""
    if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
        part = node.generators[0]
        name = ast.unparse(part.iter) if ast.unparse(node.elt) in _lengths(ast.unparse(part.target)) else ""
    elif (mapped := re.fullmatch(r"list\(map\(len, (\w+)\)\)", text)) is not None:
        name = mapped[1]
    return name if name.isidentifier() and _is_kept(function, name) else ""


def _lengths(name: str) -> set[str]:
    """How the length of a sample is asked for."""
    return {f"len({name})", f"{name}.size(0)", f"{name}.shape[0]", f"{name}.numel()"}


def _filled(function: ast.AST, named: ast.Name, empty: str) -> str:
    """The list of samples whose lengths a loop appends to the list of a name, which is `[0]` or `[]` before."""
    before = _values(function, named.id, named.lineno)
    loops = [each for each in _body(function) if isinstance(each, ast.For)]
    found = [(loop, given) for loop in loops for holder, given in _appended(loop) if holder == named.id]
    if before != [empty] or len(found) != 1 or len(_uses(function, named.id)) != 1:
        return ""
    loop, length = found[0]
    for holder, each in _appended(loop):
        known = isinstance(each, ast.Name) and ast.unparse(length) in _lengths(each.id)
        if known and _is_kept(function, holder) and len(_stores(loop, ast.unparse(each))) == 1:
            return holder
    return ""


def _appended(loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """The lists that a loop appends to in each turn, and what."""
    for statement in loop.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            continue
        if isinstance(call.func.value, ast.Name) and len(call.args) == 1:
            yield call.func.value.id, call.args[0]


def appended_to(loop: ast.For) -> set[str]:
    """The names of lists that a loop appends to in each turn."""
    return {name for name, _ in _appended(loop)}


def _is_kept(function: ast.AST, name: str) -> bool:
    """Whether a list has the samples that it had: no more than one tensor of them all is made under its name."""
    others = _values(function, name)[1:] if _stores(function, name) else [""]
    joins = rf"torch\.(cat|concat)\({name}(, .*)?\).*"
    uses = _uses(function, name)
    return all(re.fullmatch(joins, each) for each in others) and len(uses) <= 1 and all(u == "append" for u in uses)


def _values(function: ast.AST, name: str, before: int = sys.maxsize) -> list[str]:
    """The code of what a name is given in a function, above a line; "" where that is no assignment of its own."""
    return [_given(function, each) for each in _stores(function, name) if each.lineno < before]


def _stores(function: ast.AST, name: str) -> list[ast.Name]:
    named = (each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name)
    return sorted((each for each in named if not isinstance(each.ctx, ast.Load)), key=lambda each: each.lineno)


def _given(function: ast.AST, target: ast.Name) -> str:
    for each in _body(function):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        to, value = each.targets[0], each.value
        if to is target:
            return ast.unparse(value)
        if isinstance(to, ast.Tuple) and isinstance(value, ast.Tuple) and target in to.elts:
            return ast.unparse(value.elts[to.elts.index(target)]) if len(to.elts) == len(value.elts) else ""
    return ""


def _body(function: ast.AST) -> list[ast.stmt]:
    body = getattr(function, "body", ())
    return body if isinstance(body, list) else []


def _uses(function: ast.AST, name: str) -> list[str]:
    """The attributes of a list that are read, and "" where an entry is set, before it gets another value."""
    stores = _stores(function, name)
    end = stores[1].lineno if len(stores) > 1 else sys.maxsize
    found: list[str] = []
    for each in ast.walk(function):
        if isinstance(each, ast.Attribute | ast.Subscript) and isinstance(each.value, ast.Name) and each.lineno < end:
            is_read = isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
            if each.value.id == name and not is_read:
                found.append(each.attr if isinstance(each, ast.Attribute) else "")
    return found
