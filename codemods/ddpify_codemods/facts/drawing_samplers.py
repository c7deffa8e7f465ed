"""Samplers of torch that draw samples more than once, or by weights: `WeightedRandomSampler(weights, len(weights))`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .bindings import arguments, bindings
from .keyword_dictionaries import keyword_dictionary, may_say, said
from .known_sampler import known_sampler, only_length_of, uses
from .loaders import hides_order
from .origins import origins, sources
from .script import Script
from .unset_sampler import is_shared

_NAMES = frozenset(
    f"torch.utils.data.{module}{name}"
    for module in ("", "sampler.")
    for name in ("WeightedRandomSampler", "RandomSampler", "SubsetRandomSampler")
)

_ORDER = ("shuffle", "sampler", "batch_sampler")
_MOST = 100_000_000
_IN_ORDER = frozenset({"range", "SequentialSampler"})


def drawing_sampler(script: Script, call: ast.Call) -> ast.expr | None:
    """The sampler that a call of DataLoader is given, where it is one of torch's that only loaders draw from, and is no
    known one (which a data set can stand for); None for another one, or none."""
    words = {word.arg: word.value for word in call.keywords}
    sampler = words.get("sampler")
    if sampler is None or "batch_sampler" in words or len(call.args) > 2:
        return None
    if any(hides_order(script, word) for word in call.keywords):
        return None
    return sampler if _made(script, sampler) and known_sampler(script, call) is None else None


def _made(script: Script, sampler: ast.expr) -> list[ast.expr]:
    """The calls that may make a sampler, if all of them make one of torch that only loaders draw from."""
    if not isinstance(sampler, ast.Name):
        return [sampler] if _is_sampler(script, sampler) else []
    scope = script.scope(sampler)
    made = bindings(script, scope).get(sampler.id, [])
    if sampler.id in arguments(scope) or is_shared(script, sampler.id):
        return []
    loads = (each for each in uses(script, sampler) if isinstance(each.ctx, ast.Load))
    alone = all(_is_given(script, each) or only_length_of(script, each) for each in loads)
    return made if alone and all(_is_sampler(script, each) for each in made) else []


def _is_sampler(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and script.qualified(node.func) in _NAMES


def _is_given(script: Script, node: ast.expr) -> bool:
    """Whether an expression is the sampler of a loader."""
    parent = script.parents[node]
    return isinstance(parent, ast.keyword) and parent.arg == "sampler"


def order_may_be_drawn(script: Script, call: ast.Call) -> bool:
    """Whether a loader may go in an order that is drawn, or may draw its samples, by a sampler that is not known or by
    options that are not seen."""
    if known_sampler(script, call) is not None:
        return False
    words = said(script, call)
    given = [words[key] for key in ("sampler", "batch_sampler") if key in words]
    hidden = keyword_dictionary(script, call) is None and any(may_say(script, call, key) for key in _ORDER)
    return hidden or not all(_goes_in_order(script, each) for each in given)


def draws_without_end(script: Script, sampler: ast.expr) -> bool:
    """Whether a sampler is told to draw more than a list can hold, `num_samples=int(1e10)`, for loops that count."""
    numbers = [part for made in _made(script, sampler) for part in ast.walk(made) if isinstance(part, ast.Constant)]
    return any(isinstance(each.value, int | float) and each.value > _MOST for each in numbers)


def _goes_in_order(script: Script, sampler: ast.expr) -> bool:
    """Whether a sampler is none, or is seen to draw nothing: a list of indices, a range."""
    for each in origins(script, sampler):
        if isinstance(each, ast.Name) and each.id in arguments(script.scope(each)):
            return False  # other files may give it something else
        in_order = isinstance(each, ast.Call) and script.qualified(each.func).rpartition(".")[2] in _IN_ORDER
        listed = isinstance(each, ast.List | ast.ListComp | ast.Tuple | ast.Constant)
        if not in_order and not listed and not sources(script, each):
            return False
    return True


def changed_in_place(scripts: Iterable[Script], script: Script, sampler: ast.expr) -> ast.AST | None:
    """Where something is changed that a sampler may still draw by: it keeps arrays of double numbers as they are."""
    made = _made(script, sampler)
    given = [part for each in made for part in ast.walk(each) if isinstance(part, ast.Name | ast.Attribute)]
    names = {part.id if isinstance(part, ast.Name) else part.attr for part in given}
    first = min(each.lineno for each in made)
    for other in scripts:
        for node, owner in _changes(other):
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            before = other is script and node.lineno < first and other.scope(node) is script.scope(made[0])
            if name in names and not before:
                return node
    return None


def _changes(script: Script) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr]]:
    """What changes tensors, arrays and lists, and which: `weights[i] = 2`, `weights *= 2`, `weights.mul_(2)`."""
    for node in script.find(ast.Subscript):
        if not isinstance(node.ctx, ast.Load):
            yield node, node.value
    for statement in script.find(ast.AugAssign):
        yield statement, statement.target
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute):
            yield from [(call, call.func.value)] if call.func.attr.endswith("_") else []
