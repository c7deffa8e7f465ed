"""The number of a GPU in the place of a device: `device = 0 if torch.cuda.is_available() else "cpu"`, `.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from .called_modules import last_name
from .devices import dotted, is_index
from .origins import sources
from .script import KEPT, Script

_ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE


@lru_cache(maxsize=KEPT)
def numbered_devices(script: Script) -> Mapping[ast.expr, ast.expr | None]:
    """Where a device that something is put on is made of a number, not where that is the device itself: `.to(0)`.

    Returns what else that number is used for, where it has to be one: `if device >= 0`; None for nothing.
    """
    found: dict[ast.expr, ast.expr | None] = {}
    for place in _places(script):
        waiting, holders, seen = [place], set[str](), set[ast.expr]()
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            if is_index(each) and each is not place:
                found[each] = next(_uses_as_number(script, holders), None)
            else:
                holders.add(dotted(each))
                waiting += sources(script, each)
    return found


def second_number(script: Script) -> ast.expr | None:
    """Where a second GPU is named by such a number; None where there is one at most."""
    numbers = {each.value: each for each in numbered_devices(script) if isinstance(each, ast.Constant)}
    return list(numbers.values())[1] if len(numbers) > 1 else None


def _places(script: Script) -> Iterator[ast.expr]:
    """The expressions that are taken as devices."""
    for call in script.find(ast.Call):
        if call.args and (_is_move(call) or script.qualified(call.func) == "torch.device"):
            yield call.args[0]
        if _is_move(call) or script.qualified(call.func).startswith("torch."):
            yield from (word.value for word in call.keywords if word.arg == "device")


def _is_move(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and last_name(call.func) == "to"


def _uses_as_number(script: Script, holders: set[str]) -> Iterator[ast.expr]:
    """Where one of some names has to be a number: `device >= 0`, `names[device]`, `device + 1`."""
    for node in script.find(ast.Name, ast.Attribute):
        if not isinstance(node.ctx, ast.Load) or dotted(node) not in holders - {""}:
            continue
        around = script.parents[node]
        ordered = isinstance(around, ast.Compare) and any(isinstance(each, _ORDERS) for each in around.ops)
        equals = isinstance(around, ast.Compare) and any(map(_is_number, (around.left, *around.comparators)))
        counts = isinstance(around, ast.BinOp) and ("%d" in ast.unparse(around.left) or not _is_text(around.left))
        looks_up = isinstance(around, ast.Subscript) and around.slice is node
        if ordered or equals or counts or looks_up or _takes_number(script, around, node):
            yield node


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _takes_number(script: Script, around: ast.AST, node: ast.expr) -> bool:
    """Whether what is in a node is a number there: `range(device)`, `f"{device:d}"`, `"%d %s" % (device, name)`."""
    if isinstance(around, ast.Call) and node in around.args:
        name = last_name(around.func)
        return name in ("int", "range", "isinstance") or (name == "format" and ":d}" in ast.unparse(around.func))
    if isinstance(around, ast.FormattedValue):
        return around.format_spec is not None and ast.unparse(around.format_spec).rstrip("'\"").endswith("d")
    parent = script.parents[around] if isinstance(around, ast.Tuple) else None
    return isinstance(parent, ast.BinOp) and "%d" in ast.unparse(parent.left)


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and type(node.value) is int
