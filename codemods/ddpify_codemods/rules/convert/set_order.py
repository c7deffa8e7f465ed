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
_METHODS = frozenset({"append", "appendleft", "extend", "insert", "join", "write", "writelines", "writerow"})
_TAKING = frozenset({"extend", "join", "writelines", "writerow"})  # each element of what they are given
_BY_KEY = frozenset({"sorted", "min", "max"})
# What these make of a set does not depend on its order.
_IGNORE_ORDER = frozenset({"sorted", "len", "set", "frozenset", "sum", "min", "max", "any", "all", "Counter"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Warn where the elements of a set are put into an order, or something is decided by a hash."""
    for node in script.nodes:
        if _orders(script, node) and not _order_is_ignored(script, node):
            shown = ast.unparse(node).partition("\n")[0].removesuffix(":")
            message = f"`{shown}` goes by another order in every process, if these are strings"
            yield Finding(RULE.id, "warning", getattr(node, "lineno", 1), message, f"sort it, or {_REMEDY}")
        elif isinstance(node, ast.Call) and _hashes(script, node):
            message = f"`{ast.unparse(node)}` is another number in every process, if it hashes strings"
            yield Finding(
                RULE.id, "warning", node.lineno, message, f"take zlib.crc32 of the text's bytes, or {_REMEDY}"
            )


def _orders(script: Script, node: ast.AST) -> bool:
    """Whether something is made of a set that keeps the order of its elements."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in (_KEEP_ORDER if isinstance(node.func, ast.Name) else _TAKING):
            return any(is_set(script, value) for value in node.args)
        if name == "pop" and isinstance(node.func, ast.Attribute) and not node.args:
            return is_set(script, node.func.value)
        keys = [word.value for word in node.keywords if word.arg == "key"] if name in _BY_KEY else []
        return bool(keys) and _may_tie(keys[0]) and any(is_set(script, _listed(value)) for value in node.args)
    if isinstance(node, ast.For):
        return is_set(script, node.iter) and _counts_off(node)
    if isinstance(node, ast.ListComp):
        return is_set(script, node.generators[0].iter)
    if isinstance(node, ast.List | ast.Tuple):
        return any(isinstance(each, ast.Starred) and is_set(script, each.value) for each in node.elts)
    is_list = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    return is_list and is_set(script, node.value)  # type: ignore[attr-defined]


def _listed(node: ast.expr) -> ast.expr:
    """What `list(…)` is made of."""
    is_list = isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple") and len(node.args) == 1
    return node.args[0] if is_list else node  # type: ignore[attr-defined]


def _may_tie(key: ast.expr) -> bool:
    """Whether elements are sorted by what several of them have alike: a length, a count."""
    if not isinstance(key, ast.Lambda):
        return ast.unparse(key) == "len" or ast.unparse(key).endswith(".get")
    own = {each.arg for each in key.args.args}
    parts = key.body.elts if isinstance(key.body, ast.Tuple) else [key.body]
    if any(isinstance(each, ast.Name) and each.id in own for each in parts):
        return False
    looked_up = (each for each in ast.walk(key.body) if isinstance(each, ast.Subscript))
    called = (each for each in ast.walk(key.body) if isinstance(each, ast.Call))
    return any(isinstance(each.slice, ast.Name) and each.slice.id in own for each in looked_up) or any(
        ast.unparse(each.func).endswith(("len", ".get", ".count")) for each in called
    )


def _counts_off(loop: ast.For) -> bool:
    """Whether a loop keeps the order in which it goes: in a list or file, or by numbers that it counts off."""
    inside = [each for statement in loop.body for each in ast.walk(statement)]
    counted = {ast.unparse(each.target) for each in inside if isinstance(each, ast.AugAssign)}
    for each in inside:
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _METHODS:
            return True
        if isinstance(each, ast.Assign) and any(isinstance(target, ast.Subscript) for target in each.targets):
            value = ast.unparse(each.value)
            if value in counted or value.startswith("len("):
                return True
    return False


def _hashes(script: Script, call: ast.Call) -> bool:
    """Whether Python's own hash() is taken, other than for an object's `__hash__`."""
    if not isinstance(call.func, ast.Name) or script.qualified(call.func) != "hash" or "hash" in script.defined:
        return False
    return getattr(script.scope(call), "name", "") != "__hash__"


def _order_is_ignored(script: Script, call: ast.AST) -> bool:
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
