"""Devices that only the run knows: what an option, a file of settings or the environment calls them, as "cuda:0"."""

from __future__ import annotations

import ast
import re

from .called_modules import last_name
from .devices import indexed_string, is_index
from .origins import origins, passed, sources
from .script import Script

_LOOKUPS = frozenset({"get", "getattr", "getenv", "pop"})
_NAMES_DEVICE = re.compile("device|gpu|cuda", re.IGNORECASE)


def made_of_setting(script: Script, call: ast.Call) -> bool:
    """Whether a `torch.device(…)` is made of such a name: `torch.device(args.device)`."""
    is_whole = len(call.args) == 1 and not call.keywords and "rank" not in ast.unparse(call.args[0])
    asked = script.parents[call]
    is_asked = isinstance(asked, ast.Attribute) and asked.attr in ("type", "index")
    return is_whole and not is_asked and not is_index(call.args[0]) and _is_setting(script, call.args[0], call)


def moved_to_setting(script: Script, node: ast.expr) -> bool:
    """Whether something is put on a device that a setting names: `model.to(config["device"])`."""
    key, parent = _key(script, node), script.parents[node]
    if key is None or not _NAMES_DEVICE.search(key) or _is_set(script, key):
        return False
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    moves = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "to"
    return moves and parent.args[0] is node  # type: ignore[attr-defined]


def _is_setting(script: Script, named: ast.expr, call: ast.Call) -> bool:
    made = [*origins(script, named)]
    if isinstance(named, ast.Name):
        scope = script.scope(named)
        handed = passed(script, scope, named.id) if isinstance(scope, ast.FunctionDef) else []
        made += [each for given in handed for each in origins(script, given)]
    for each in made:
        ways = [way for way in sources(script, each) if way is not call]
        if isinstance(each, ast.Attribute) and each.attr not in ("type", "device_type") and not ways:
            return True
        if isinstance(each, ast.JoinedStr) and not indexed_string(each):
            return True
        key = _key(script, each)
        if key is not None and not _is_set(script, key):
            return True
    return False


def _key(script: Script, node: ast.expr) -> str | None:
    """What a setting is looked up by: "gpus" of `config["trainer"]["gpus"]` and of `config.get("gpus")`."""
    if isinstance(node, ast.Subscript) and script.qualified(node.value) == "sys.argv":
        return "sys.argv"
    looked_up = [node.slice] if isinstance(node, ast.Subscript) else []
    if isinstance(node, ast.Call) and last_name(node.func) in _LOOKUPS:
        looked_up = node.args[:2]
    names = [each.value for each in looked_up if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return names[0] if names else None


def _is_set(script: Script, key: str) -> bool:
    """Whether the file itself says what a setting is: `{"device": "cuda:0"}`, `config["device"] = device`."""
    made = [word.arg for call in script.find(ast.Call) if last_name(call.func) == "dict" for word in call.keywords]
    stored = [each.slice for each in script.find(ast.Subscript) if isinstance(each.ctx, ast.Store)]
    keys = [*stored, *(each for table in script.find(ast.Dict) for each in table.keys)]
    return key in made or any(isinstance(each, ast.Constant) and each.value == key for each in keys)
