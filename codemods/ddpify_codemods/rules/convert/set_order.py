"""DDP401: the order of a set of strings, and what hash() makes of one, are others in every process (D12)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...facts.sets import is_set
from ...rule import Edit, Finding, Rule
from ...targets import Target

_REMEDY = "start it with PYTHONHASHSEED=0, which torchrun hands on to every process"
_KEEP_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "zip"})
# What these make of a set does not depend on its order.
_IGNORE_ORDER = frozenset({"sorted", "len", "set", "frozenset", "sum", "min", "max", "any", "all", "Counter"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Warn where the elements of a set are put into an order, or something is decided by a hash."""
    for call in script.find(ast.Call):
        orders = isinstance(call.func, ast.Name) and call.func.id in _KEEP_ORDER
        if orders and any(is_set(script, value) for value in call.args) and not _order_is_ignored(script, call):
            message = f"`{ast.unparse(call)}` has another order in every process, if its elements are strings"
            yield Finding(RULE.id, "warning", call.lineno, message, f"sort it, or {_REMEDY}")
        elif _hashes(script, call):
            message = f"`{ast.unparse(call)}` is another number in every process, if it hashes strings"
            yield Finding(
                RULE.id, "warning", call.lineno, message, f"take zlib.crc32 of the text's bytes, or {_REMEDY}"
            )


def _hashes(script: Script, call: ast.Call) -> bool:
    """Whether Python's own hash() is taken, other than for an object's `__hash__`."""
    if not isinstance(call.func, ast.Name) or script.qualified(call.func) != "hash" or "hash" in script.defined:
        return False
    return getattr(script.scope(call), "name", "") != "__hash__"


def _order_is_ignored(script: Script, call: ast.Call) -> bool:
    """Whether the result goes into sorted() or the like, or is sorted on the next line."""
    parent = script.parents[call]
    if isinstance(parent, ast.Call) and ast.unparse(parent.func) in _IGNORE_ORDER:
        return True
    names = [target.id for target in getattr(parent, "targets", ()) if isinstance(target, ast.Name)]
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "sort"
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        for node in script.nodes
    )


RULE = Rule(
    id="DDP401",
    title="Sets have no common order",
    why="""\
Python mixes a random number into the hashes of strings, another one in every process. Word and class numbers that are
counted off from a set then differ between the processes (D12), and so does a split by `hash(name) % 10`.""",
    before="""\
import torch

words = "the cat saw the dog".split()
numbers = {word: number for number, word in enumerate(set(words))}
model = torch.nn.Embedding(len(numbers), 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.tensor([numbers[word] for word in words])).mean().backward()
optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)

init_process_group("gloo")

words = "the cat saw the dog".split()
numbers = {word: number for number, word in enumerate(set(words))}
model = torch.nn.Embedding(len(numbers), 2)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.tensor([numbers[word] for word in words])).mean().backward()
optimizer.step()
destroy_process_group()
""",
    check=check,
    target="cpu",
)
