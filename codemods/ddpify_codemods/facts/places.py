"""Where in a script a string means a device."""

from __future__ import annotations

import ast
from typing import Literal

from .devices import Branches, dotted
from .script import Script

Place = Literal["device", "text", "file", ""]
_DEVICE_CALLS = {"torch.device", "torch.set_default_device", "torch.Generator"}
_LOOKUPS = {"get", "setdefault", "pop", "getattr"}
_TEXT_METHODS = {"startswith", "endswith", "split", "lower", "replace", "find", "strip"}


def is_device_call(script: Script, call: ast.Call) -> bool:
    """Whether a call is `torch.device(…)`."""
    return script.qualified(call.func) == "torch.device"


def device_place(branches: Branches, node: ast.expr) -> Place:
    """What kind of device an expression's place asks for.

    Returns "device" where any device object will do, "text" where it has to stay a string, "file" for the device onto
    which a file is loaded, "" where it is no device.
    """
    script = branches.script
    place: Place = "device"
    parent = script.parents[node]
    while isinstance(parent, (ast.IfExp, ast.BoolOp)):
        if isinstance(parent, ast.BoolOp) or branches.truth(parent.test) is None:
            place = "text"
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return ""
        node, parent = parent, script.parents[parent]
    if isinstance(parent, ast.keyword):
        return _stricter(place, _keyword(script, parent))
    if isinstance(parent, ast.Call):
        return _stricter(place, _argument(script, parent, node))
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return "text" if any(_used_as_text(script, dotted(name)) for name in targets) else place
    if isinstance(parent, ast.Dict):
        return "text" if node in parent.values and _mentions_device(_key_of(parent, node)) else ""
    return "text" if isinstance(parent, (ast.arguments, ast.Return)) else ""


def asks_which_device(script: Script, node: ast.Constant | ast.expr) -> bool:
    """Whether an expression is compared with a device: `device.type == "cuda"`, `device.startswith("cuda")`."""
    parent = script.parents[node]
    if isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        node, parent = parent, script.parents[parent]
    if isinstance(parent, ast.Compare):
        return any(_names_device(each) for each in (parent.left, *parent.comparators) if each is not node)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        return parent.func.attr in _TEXT_METHODS and _names_device(parent.func.value)
    if isinstance(parent, ast.keyword):
        return parent.arg == "choices" and any(map(_mentions_device, getattr(script.parents[parent], "args", ())))
    return False


def _names_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return any(map(_names_device, node.args)) if dotted(node.func) == "str" else _names_device(node.func)
    last = dotted(node).rpartition(".")[2].lower()
    return last == "type" or "device" in last


def _stricter(place: Place, found: Place) -> Place:
    return "text" if found == "device" and place == "text" else found


def _keyword(script: Script, keyword: ast.keyword) -> Place:
    if keyword.arg == "map_location":
        return "file"
    call = script.parents[keyword]
    if keyword.arg == "default" and isinstance(call, ast.Call):
        return "text" if any(_mentions_device(option) for option in call.args) else ""
    return "device" if keyword.arg == "device" else ""


def _argument(script: Script, call: ast.Call, node: ast.expr) -> Place:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        return "device"
    name = script.qualified(call.func)
    if name in _DEVICE_CALLS:
        return "text"
    if name == "torch.load":
        return "file"
    looked_up = dotted(call.func).rpartition(".")[2] in _LOOKUPS and any(map(_mentions_device, call.args))
    return "text" if looked_up and node is call.args[-1] else ""


def _key_of(table: ast.Dict, value: ast.expr) -> ast.expr | None:
    return table.keys[table.values.index(value)]


def _mentions_device(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "device" in node.value.lower()


def _used_as_text(script: Script, name: str) -> bool:
    for node in script.nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == name:
            parent = script.parents[node]
            if isinstance(parent, ast.keyword) and parent.arg == "device_type":
                return True
            if isinstance(parent, ast.Call) and is_device_call(script, parent):
                return True
            if isinstance(parent, ast.Attribute) and parent.attr in _TEXT_METHODS:
                return True
            if isinstance(parent, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in parent.ops):
                return True
    return False
