"""Loaders whose options come from a dictionary: `DataLoader(dataset, **options)`."""

from __future__ import annotations

import ast

from ..bindings import bindings
from ..keyword_dictionaries import KeywordDictionary, keyword_dictionary, may_say
from ..loaders import Seen, can_be_repeated, seen
from ..script import Script

_REPEATED = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
# What no DistributedSampler can stand in for.
_OF_ITS_OWN = ("sampler", "batch_sampler", "collate_fn")


def options(script: Script, call: ast.Call) -> str:
    """The name of the dictionary that a loader's batch size and order come from; "" where it cannot be changed, or
    need not: its entries are written down, and say no order.

    Args: the file; a call of DataLoader. The dictionary has to be made in the same function, for this loader alone.
    """
    hidden = [word.value for word in call.keywords if word.arg is None]
    given = {word.arg for word in call.keywords}
    if len(hidden) != 1 or len(call.args) != 1 or given & {"shuffle", "sampler", "batch_sampler", "batch_size"}:
        return ""
    name = hidden[0]
    if not isinstance(name, ast.Name) or not can_be_repeated(script, call.args[0]):
        return ""
    scope = script.scope(call)
    made = bindings(script, scope).get(name.id, [])
    sized = any(
        (isinstance(part, ast.Constant) and part.value == "batch_size")
        or (isinstance(part, ast.keyword) and part.arg == "batch_size")
        for value in made
        for part in ast.walk(value)
    )
    written = keyword_dictionary(script, call)
    if any(may_say(script, call, key) for key in _OF_ITS_OWN) or (written and "shuffle" not in written.entries):
        return ""
    later = [
        node
        for node in script.find(ast.Name)
        if node.id == name.id and script.scope(node) is scope and node.lineno > call.lineno
    ]
    around = any(isinstance(parent, _REPEATED) for parent in script.ancestors(call))
    return name.id if sized and not later and not around else ""


def shared_order(script: Script, call: ast.Call) -> KeywordDictionary | None:
    """The dictionary, written down, that says in which order a loader loads, and is left as it is for others that it is
    handed to; None for others."""
    given = {word.arg for word in call.keywords}
    written = None if options(script, call) else keyword_dictionary(script, call)
    if written is None or "shuffle" not in written.entries or given & {"shuffle", "sampler", "batch_sampler"}:
        return None
    return None if {"sampler", "batch_sampler", "dataset"} & {*written.entries} or len(call.args) > 2 else written


def shown_of(script: Script, call: ast.Call) -> Seen | None:
    """What a call of DataLoader says, by a dictionary that is shared, too; None where it hides the order."""
    written = shared_order(script, call)
    if written is None:
        return seen(script, call)
    dataset = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "dataset")]
    known = len(dataset) == 1 and not isinstance(dataset[0], ast.Starred | ast.NamedExpr)
    return Seen(dataset[0], written.entries["shuffle"], None) if known else None


def in_other_order(written: KeywordDictionary, world_size: str = "") -> str:
    """The code of such a dictionary for a loader with a sampler: without an order of its own. world_size: by what the
    batch size in it is divided; "" where it stays."""
    name = written.name.id
    size = f'batch_size={name}["batch_size"] // {world_size}, ' if world_size else ""
    return f"dict({name}, {size}shuffle=False)"
