"""Samplers of torch that loaders are given: `SubsetRandomSampler(indices)`, `RandomSampler(data)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from .bindings import arguments, bindings
from .keyword_dictionaries import may_say
from .loaders import hides_order
from .script import Script
from .unset_sampler import is_bound_before, is_shared, runs_before

_MODULES = ("torch.utils.data.", "torch.utils.data.sampler.")
_ORDER = {"sampler", "batch_sampler"}
Kind = Literal["SubsetRandomSampler", "RandomSampler", "SequentialSampler"]


@dataclass(frozen=True)
class KnownSampler:
    """What draws the samples of a loader's data set, or some of them, each once.

    made: the call that makes it, of the data set or of the indices alone. assigned: the name that it has, for this
    loader alone; None where the call of the loader makes it. is_after: whether the data set has its name before it is
    made.
    """

    kind: Kind
    made: ast.Call
    assigned: ast.Name | None = None
    is_after: bool = False

    @property
    def is_subset(self) -> bool:
        """Whether it draws some of the samples alone."""
        return self.kind == "SubsetRandomSampler"

    @property
    def shuffles(self) -> bool:
        """Whether it draws in a random order."""
        return self.kind != "SequentialSampler"

    @property
    def indices(self) -> ast.expr:
        """Which samples a subset has."""
        return self.made.args[0]


def known_sampler(script: Script, call: ast.Call) -> KnownSampler | None:
    """The sampler of a call of DataLoader, where it draws all samples, or some, each once; None for another one, or for
    one that something else may use, or beside `**options` that may say more of the order."""
    words = {word.arg: word.value for word in call.keywords}
    sampler, dataset = words.get("sampler"), call.args[0] if call.args else words.get("dataset")
    if sampler is None or dataset is None or len(call.args) > 2 or "batch_sampler" in words:
        return None
    if any(hides_order(script, word) for word in call.keywords):
        return None
    if (kind := _kind(script, sampler, dataset)) is not None:
        assert isinstance(sampler, ast.Call)
        return KnownSampler(kind, sampler)
    if not isinstance(sampler, ast.Name):
        return None
    scope = script.scope(call)
    made = bindings(script, scope).get(sampler.id, [])
    first = made[0] if len(made) == 1 else None
    kind = _kind(script, first, dataset)
    if kind is None or not isinstance(first, ast.Call):
        return None
    assign = script.parents[first]
    if not isinstance(assign, ast.Assign) or len(assign.targets) > 1 or not isinstance(assign.targets[0], ast.Name):
        return None
    others = uses(script, sampler) - {sampler, assign.targets[0]}
    if sampler.id in arguments(scope) or is_shared(script, sampler.id):
        return None
    if not all(only_length_of(script, each) for each in others) or not runs_before(
        script, assign, script.statement(call)
    ):
        return None
    found = KnownSampler(
        kind, first, assign.targets[0], isinstance(dataset, ast.Name) and _is_there(script, dataset, assign)
    )
    return found if found.is_after or not found.is_subset or _stays(script, found.indices) else None


def _kind(script: Script, node: ast.expr | None, dataset: ast.expr) -> Kind | None:
    """Which sampler a call makes, of a data set or of indices alone; None for another one."""
    if not isinstance(node, ast.Call) or not script.qualified(node.func).startswith(_MODULES):
        return None
    given = [*node.args, *(word.value for word in node.keywords if word.arg == "data_source")]
    if len(given) != 1 or len(node.args) + len(node.keywords) != 1 or isinstance(given[0], ast.Starred):
        return None
    name = script.qualified(node.func).rpartition(".")[2]
    if name == "SubsetRandomSampler" and node.args:
        return name  # type: ignore[return-value]
    whole = name in ("RandomSampler", "SequentialSampler") and ast.unparse(given[0]) == ast.unparse(dataset)
    return name if whole and isinstance(given[0], ast.Name | ast.Attribute) else None  # type: ignore[return-value]


def _stays(script: Script, indices: ast.expr) -> bool:
    """Whether indices are still what they were when a sampler was made of them."""
    if not isinstance(indices, ast.Name) or is_shared(script, indices.id):
        return False
    return len(bindings(script, script.scope(indices)).get(indices.id, ())) == 1


def _is_there(script: Script, dataset: ast.Name, assign: ast.stmt) -> bool:
    """Whether a data set has the value at a statement that it has later; be it one of the file, in a function."""
    scope = script.scope(assign)
    if isinstance(scope, ast.Module) or dataset.id in (*bindings(script, scope), *arguments(scope)):
        return is_bound_before(script, dataset, assign)
    return len(bindings(script, script.tree).get(dataset.id, [])) == 1 and not is_shared(script, dataset.id)


def draws_each_once(script: Script, call: ast.Call) -> bool:
    """Whether a loader draws each sample once: all of its data set, or those of a subset."""
    given = {word.arg for word in call.keywords} & _ORDER or len(call.args) > 3
    hidden = any(may_say(script, call, key) for key in _ORDER)
    return not (given or hidden) or known_sampler(script, call) is not None


def uses(script: Script, name: ast.Name) -> set[ast.Name]:
    """Where a variable stands: a name in its function, or one of the file wherever it has no other meaning."""
    scope = script.scope(name)

    def is_same(node: ast.Name) -> bool:
        there = script.scope(node)
        elsewhere = node.id in (*bindings(script, there), *arguments(there))
        return there is scope or (isinstance(scope, ast.Module) and not elsewhere)

    return {node for node in script.find(ast.Name) if node.id == name.id and is_same(node)}


def only_length_of(script: Script, node: ast.expr) -> bool:
    """Whether only the length of something is taken."""
    call = script.parents[node]
    return isinstance(call, ast.Call) and call.args == [node] and script.qualified(call.func) == "len"


def is_alike(script: Script, sampler: ast.expr) -> bool:
    """Whether only that is read of a loader's sampler which a Subset has as well: its length, its indices."""
    parent = script.parents[sampler]
    return only_length_of(script, sampler) or (isinstance(parent, ast.Attribute) and parent.attr == "indices")
