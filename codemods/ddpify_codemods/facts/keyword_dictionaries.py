"""Keyword arguments from a dictionary that the file writes down: `DataLoader(dataset, **options)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from .bindings import arguments, bindings
from .devices import taken_with_gpu
from .script import Script

# How samples are loaded, but for which, in which order, and how many at once.
_HOW = frozenset(
    {"num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"}
)


@dataclass(frozen=True)
class KeywordDictionary:
    """The one dictionary that a name stands for, and that is only handed over: `**name`.

    made: the dict display or the call of dict, and entries: its values by key. calls: what it is handed to, in order.
    needs_gpu: whether it is empty where there is no GPU: `dict(batch_size=8) if use_cuda else {}`. either: whether it
    is one of two that differ in their batch size and in how they load, and the first is told: `dict(batch_size=128,
    num_workers=4) if use_cuda else dict(batch_size=64)`.
    """

    name: ast.Name
    made: ast.expr
    entries: Mapping[str, ast.expr]
    calls: tuple[ast.Call, ...]
    needs_gpu: bool = False
    either: bool = False


def keyword_dictionary(script: Script, call: ast.Call) -> KeywordDictionary | None:
    """The dictionary behind the `**name` of a call; None where there is none, or several, or its keys are not said."""
    hidden = [word.value for word in call.keywords if word.arg is None]
    if len(hidden) != 1 or not isinstance(hidden[0], ast.Name):
        return None
    name = hidden[0]
    made = only_handed_over(script, name) or []
    if len(made) != 1:
        return None
    of_gpu, first = _of_gpu(script, made[0]), _first_of_two(script, made[0])
    shown = of_gpu or first or made[0]
    entries = written_entries(script, shown)
    if entries is None or (of_gpu is not None and "batch_size" not in entries):
        return None
    same = (each for each in script.find(ast.Name) if each.id == name.id and isinstance(each.ctx, ast.Load))
    handed = (script.parents[script.parents[each]] for each in same)
    calls = sorted((each for each in handed if isinstance(each, ast.Call)), key=lambda each: each.lineno)
    return KeywordDictionary(name, shown, entries, tuple(calls), of_gpu is not None, first is not None)


def _first_of_two(script: Script, made: ast.expr) -> ast.expr | None:
    """The first of two dictionaries that load the same in the same order, by batches of more than one sample."""
    if not isinstance(made, ast.IfExp):
        return None
    both = [written_entries(script, each) for each in (made.body, made.orelse)]
    said_of = [
        {key: ast.unparse(value) for key, value in (each or {}).items() if key not in (*_HOW, "batch_size")}
        for each in both
    ]
    sizes = [(each or {}).get("batch_size") for each in both]
    several = all(isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value > 1 for each in sizes)
    return made.body if said_of[0] == said_of[1] and several else None


def _of_gpu(script: Script, made: ast.expr) -> ast.expr | None:
    """The options of a GPU, if there are none without one."""
    first = taken_with_gpu(script, made) if isinstance(made, ast.IfExp) else None
    if not isinstance(made, ast.IfExp) or first is None:
        return None
    taken, other = (made.body, made.orelse) if first else (made.orelse, made.body)
    return taken if written_entries(script, other) == {} else None


def said(script: Script, call: ast.Call) -> dict[str, ast.expr]:
    """The keyword arguments of a call, those in a dictionary that the file writes down included."""
    hidden = keyword_dictionary(script, call)
    words = {word.arg: word.value for word in call.keywords if word.arg is not None}
    return {**(hidden.entries if hidden is not None else {}), **words}


def may_say(script: Script, call: ast.Call, key: str) -> bool:
    """Whether `**name` may give a call an argument: where its keys are not known, all that the file writes down."""
    if all(word.arg is not None for word in call.keywords):
        return False
    hidden = keyword_dictionary(script, call)
    if hidden is not None:
        return key in hidden.entries
    return any(
        (isinstance(node, ast.Constant) and node.value == key)
        or (isinstance(node, ast.keyword) and node.arg == key and not _is_given_to_loader(script, node))
        for node in script.nodes
    )


def _is_given_to_loader(script: Script, word: ast.keyword) -> bool:
    call = script.parents[word]
    return isinstance(call, ast.Call) and script.qualified(call.func).rpartition(".")[2] == "DataLoader"


def only_handed_over(script: Script, name: ast.Name) -> list[ast.expr] | None:
    """What a name is made of; None where it is used other than as `**name`, or comes from elsewhere."""
    named = [each for each in script.find(ast.Name) if each.id == name.id]
    added = {each: value for each in named if (value := _added(script, each)) is not None}
    uses = [each for each in named if each not in added]
    scope = script.scope(name)
    bound = bindings(script, scope).get(name.id) or bindings(script, script.tree).get(name.id, [])
    made = [value for value in bound if value not in added.values()]
    stored = [each for each in uses if not isinstance(each.ctx, ast.Load)]
    handed = [script.parents[each] for each in uses if isinstance(script.parents[each], ast.keyword)]
    if name.id in arguments(scope) or len(stored) != len(made) or len(stored) + len(handed) != len(uses):
        return None
    return made if all(each.arg is None for each in handed) else None  # type: ignore[attr-defined]


def _added(script: Script, name: ast.Name) -> ast.expr | None:
    """What is added to a dictionary, if it says only how samples are loaded: `options["num_workers"] = 4`."""
    place = script.parents[name]
    if not isinstance(place, ast.Subscript) or place.value is not name or not isinstance(place.slice, ast.Constant):
        return None
    statement = script.parents[place]
    stored = isinstance(statement, ast.Assign) and statement.targets == [place]
    return statement.value if stored and place.slice.value in _HOW else None  # type: ignore[attr-defined]


def written_entries(script: Script, node: ast.expr) -> dict[str, ast.expr] | None:
    """The entries of a dict display or a call of dict by their keys; None where the source does not say them."""
    if isinstance(node, ast.Dict):
        pairs = [*zip(node.keys, node.values, strict=True)]
        known = {key: str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
        if not all(key in known or (key is None and _says_how(script, value)) for key, value in pairs):
            return None
        return {known[key]: value for key, value in pairs if key in known}
    if isinstance(node, ast.Call) and script.qualified(node.func) == "dict" and not node.args:
        named = {word.arg: word.value for word in node.keywords if word.arg is not None}
        return named if len(named) == len(node.keywords) else None
    return None


def _says_how(script: Script, node: ast.expr) -> bool:
    """Whether a dictionary is what a function of the file gives back that gives dictionaries alone, and these say
    nothing but how samples are loaded: `**worker_options(workers)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    made = [each for each in script.tree.body if isinstance(each, ast.FunctionDef) and each.name == node.func.id]
    if len(made) != 1 or made[0].decorator_list or _times_bound(script, node.func.id) != 1:
        return False
    inside = [each for each in ast.walk(made[0]) if script.scope(each) is made[0]]
    given = [each.value for each in inside if isinstance(each, ast.Return)]
    alone = not any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in inside)
    return alone and bool(given) and all(isinstance(each, ast.Dict) and _keys(each) <= _HOW for each in given)


def _keys(node: ast.Dict) -> set[object]:
    return {key.value if isinstance(key, ast.Constant) else None for key in node.keys}


def _times_bound(script: Script, name: str) -> int:
    """How often anything in a file may give a name a value, in whichever scope; imports of all names count, too."""
    found = 0
    for node in script.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            found += node.name == name
        elif isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found += (node.id if isinstance(node, ast.Name) else node.attr) == name
        elif isinstance(node, ast.arg):
            found += node.arg == name
        elif isinstance(node, ast.alias):
            found += node.name == "*" or (node.asname or node.name.partition(".")[0]) == name
    return found


def drops_last(script: Script, call: ast.Call) -> bool | None:
    """Whether a loader leaves out the last samples, which are no full batch; None where only the run knows."""
    given = said(script, call).get("drop_last")
    if given is None:
        return None if may_say(script, call, "drop_last") else False
    return bool(given.value) if isinstance(given, ast.Constant) else None
