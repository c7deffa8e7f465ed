"""Loaders that are made in sight: calls of torch's DataLoader that show what is loaded, and in which order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import attribute_bindings, bindings
from .hand_written import assigned_name, values_of
from .keyword_dictionaries import only_handed_over, written_entries
from .script import Script

_STREAMS = frozenset({"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"})
_ORDER = frozenset({"shuffle", "sampler", "batch_sampler"})
_COLLECTIONS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Tuple)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOADER = re.compile(r"_?(data_?)?(loader|dl)s?$", re.IGNORECASE)


@dataclass(frozen=True)
class Seen:
    """What a call of DataLoader says.

    dataset: what is loaded. shuffle: whether in a random order; None where it is not said. sampler: of the script's
    own, None for none, `sampler=None` too.
    """

    dataset: ast.expr
    shuffle: ast.expr | None
    sampler: ast.expr | None


def seen(script: Script, call: ast.Call) -> Seen | None:
    """What a call of DataLoader says; None where it hides the order, or there is none (HAZARDS D8, D10)."""
    words = {word.arg: word.value for word in call.keywords if word.arg}
    dataset = call.args[0] if call.args else words.get("dataset")
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if dataset is None or len(call.args) > 3 or starred or isinstance(dataset, ast.NamedExpr):
        return None
    shuffle, sampler = call.args[2] if len(call.args) > 2 else words.get("shuffle"), words.get("sampler")
    size = call.args[1] if len(call.args) > 1 else words.get("batch_size")
    if "batch_sampler" in words or _is(size, None):
        return None
    if _is(sampler, None):
        sampler = None
        if len(call.args) > 2:
            return None
    if sampler is not None and shuffle is not None and not _is(shuffle, False):
        return None
    # torch refuses any sampler beside shuffle=True, and a batch_sampler beside a sampler.
    if sampler is None and not _is(shuffle, True) and any(hides_order(script, word) for word in call.keywords):
        return None
    if not _is(shuffle, True) and values_of(script, dataset, _stream_classes(script)):
        return None
    return Seen(dataset, shuffle, sampler)


def order_of(call: ast.Call) -> str:
    """The argument of a loader that says in which order it loads; "" for none."""
    given = {word.arg for word in call.keywords}
    named = next((name for name in ("sampler", "shuffle") if name in given), "")
    return named or ("2" if len(call.args) > 2 else "")


def says_no_sampler(call: ast.Call) -> bool:
    """Whether a call of DataLoader says that there is no sampler of the script's own: `sampler=None`."""
    return any(word.arg == "sampler" and _is(word.value, None) for word in call.keywords)


def is_false(shuffle: ast.expr | None) -> bool:
    """Whether the order is that of the data set, for all that the source says."""
    return shuffle is None or (isinstance(shuffle, ast.Constant) and not shuffle.value)


def can_be_repeated(script: Script, node: ast.expr) -> bool:
    """Whether an expression may be written twice: a name, attributes that are no properties, an entry of a dict."""
    if isinstance(node, ast.Attribute):
        return node.attr not in script.defined and can_be_repeated(script, node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, (ast.Name, ast.Constant)) and _is_written_down(script, node.value)
    return isinstance(node, ast.Name)


def _is_written_down(script: Script, node: ast.expr) -> bool:
    """Whether a name stands for dicts and lists that the file writes down, whose entries cost nothing."""
    code, known = ast.unparse(node), attribute_bindings(script)
    made = bindings(script, script.scope(node)).get(code) or bindings(script, script.tree).get(code) or known.get(code)
    return bool(made) and all(isinstance(each, _COLLECTIONS) for each in made or ())


def new_name(script: Script, call: ast.Call) -> str:
    """A name that a data set without one can have from within a loader's call; "" where none can be bound there."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.comprehension):
            return ""  # Python allows it in no comprehension's iterable
        if isinstance(parent, _COMPREHENSIONS):
            scope = next((each for each in script.ancestors(parent) if isinstance(each, _SCOPES)), None)
            if isinstance(scope, ast.ClassDef):
                return ""
    taken = {*names_in(script)}
    return next((name for name in _candidates(assigned_name(script, call)) if name not in taken), "")


def _candidates(loader: str) -> Iterator[str]:
    name = loader.rpartition(".")[2]
    stem = _LOADER.sub("", name)
    if stem != name and stem.isidentifier():
        yield f"{stem}_set" if "_" in name else f"{stem}set"
    yield "dataset"
    if name.isidentifier():
        yield f"{name}_dataset"


def names_in(script: Script) -> Iterator[str]:
    """The names that a file uses, whatever for."""
    for node in script.nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def hides_order(script: Script, word: ast.keyword) -> bool:
    """Whether `**options` may say in which order a loader loads."""
    keys = set() if word.arg else _keys(script, word.value)
    return keys is None or bool(keys & _ORDER)


def _keys(script: Script, node: ast.expr) -> set[str] | None:
    """The keys of a dictionary that is only written down and handed over; None where the source does not say."""
    if isinstance(node, ast.IfExp):
        return _together([_keys(script, node.body), _keys(script, node.orelse)])
    if isinstance(node, ast.Name):
        made = only_handed_over(script, node)
        return None if made is None else _together([_keys(script, value) for value in made])
    entries = written_entries(script, node)
    return None if entries is None else {*entries}


def _together(found: list[set[str] | None]) -> set[str] | None:
    known = [keys for keys in found if keys is not None]
    return set().union(*known) if found and len(known) == len(found) else None


def _stream_classes(script: Script) -> frozenset[str]:
    """The classes of the file that are read as streams."""
    found: set[str] = set()
    for node in sorted(script.find(ast.ClassDef), key=lambda each: each.lineno):
        if any(script.qualified(base) in found | _STREAMS for base in node.bases):
            found.add(node.name)
    return frozenset(found) | _STREAMS
