"""Samplers of some samples of a data set: `SubsetRandomSampler(indices)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeGuard

from .bindings import arguments, bindings
from .keyword_dictionaries import may_say
from .script import Script
from .unset_sampler import is_bound_before, is_shared, runs_before

_CLASSES = frozenset({"torch.utils.data.SubsetRandomSampler", "torch.utils.data.sampler.SubsetRandomSampler"})
_ORDER = {"sampler", "batch_sampler"}


@dataclass(frozen=True)
class SubsetSampler:
    """What draws some samples of a loader's data set, in a random order.

    made: the call that makes it, of the indices alone. assigned: the name that it has, for this loader alone; None
    where the call of the loader makes it. is_after: whether the data set has its name before it is made.
    """

    made: ast.Call
    assigned: ast.Name | None = None
    is_after: bool = False

    @property
    def indices(self) -> ast.expr:
        """Which samples it draws."""
        return self.made.args[0]


def subset_sampler(script: Script, call: ast.Call) -> SubsetSampler | None:
    """The sampler of a call of DataLoader that draws some of the samples; None for another one, or for one that
    something else may use."""
    words = {word.arg: word.value for word in call.keywords}
    sampler, dataset = words.get("sampler"), call.args[0] if call.args else words.get("dataset")
    if sampler is None or dataset is None or len(call.args) > 2 or None in words or "batch_sampler" in words:
        return None
    if _is_subset(sampler, script):
        return SubsetSampler(sampler)
    scope = script.scope(call)
    if not isinstance(sampler, ast.Name):
        return None
    made = bindings(script, scope).get(sampler.id, [])
    (first,) = made if len(made) == 1 else (None,)
    if first is None or not _is_subset(first, script):
        return None
    assign = script.parents[first]
    if not isinstance(assign, ast.Assign) or len(assign.targets) > 1 or not isinstance(assign.targets[0], ast.Name):
        return None
    others = uses(script, sampler) - {sampler, assign.targets[0]}
    if sampler.id in arguments(scope) or is_shared(script, sampler.id):
        return None
    if not all(only_length_of(script, each) for each in others):
        return None
    if not runs_before(script, assign, script.statement(call)):
        return None
    if isinstance(dataset, ast.Name) and _is_there(script, dataset, assign):
        return SubsetSampler(first, assign.targets[0], is_after=True)
    index = first.args[0]
    stays = isinstance(index, ast.Name) and len(bindings(script, scope).get(index.id, ())) == 1
    return SubsetSampler(first, assign.targets[0]) if stays and not is_shared(script, index.id) else None  # type: ignore[attr-defined]


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
    return not (given or hidden) or subset_sampler(script, call) is not None


def uses(script: Script, name: ast.Name) -> set[ast.Name]:
    """Where a name stands in a file."""
    return {node for node in script.find(ast.Name) if node.id == name.id}


def only_length_of(script: Script, node: ast.expr) -> bool:
    """Whether only the length of something is taken."""
    call = script.parents[node]
    return isinstance(call, ast.Call) and call.args == [node] and script.qualified(call.func) == "len"


def is_alike(script: Script, sampler: ast.expr) -> bool:
    """Whether only that is read of a loader's sampler which a Subset has as well: its length, its indices."""
    parent = script.parents[sampler]
    return only_length_of(script, sampler) or (isinstance(parent, ast.Attribute) and parent.attr == "indices")


def _is_subset(node: ast.expr, script: Script) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or script.qualified(node.func) not in _CLASSES:
        return False
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
