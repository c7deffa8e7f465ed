"""Data sets whose samples depend on what was loaded before: a counter, a running mean, a generator, also of what
changes their samples (D20)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .script import Script

_LOADS = ("__getitem__", "__getitems__")
_CHANGES = ("__call__", "forward")
_DATA = ("torchvision.", "torch.utils.data.")
_GENERATORS = frozenset({"numpy.random.RandomState", "numpy.random.default_rng", "random.Random", "torch.Generator"})


def by_earlier_samples(script: Script, scripts: Sequence[Script]) -> Iterator[ast.stmt]:
    """Where a data set of a file goes on from what it has kept of other samples, by which later ones are made.

    So for an object that one is given, to change each sample with. What is only counted changes no sample, nor does
    what is kept under the index of one.
    """
    made = {
        _last(call.func)
        for each in scripts
        for call in each.find(ast.Call)
        if isinstance(call.func, ast.Name | ast.Attribute)
    }
    for owner in script.find(ast.ClassDef):
        if owner.name in made:
            yield from _of_class(owner, _LOADS)
        if any(isinstance(each, ast.FunctionDef) and each.name in _CHANGES for each in owner.body) and any(
            _is_given_to_data(each, owner.name, scripts) for each in scripts
        ):
            yield from _of_class(owner, _CHANGES)


def _is_given_to_data(script: Script, name: str, scripts: Sequence[Script]) -> bool:
    """Whether a file gives an object of a class to a data set that it makes, itself or in a list of transforms."""
    made: list[ast.AST] = [call for call in script.find(ast.Call) if _last(call.func) == name]
    named = {
        target.id
        for call in made
        if isinstance(assigned := script.statement(call), ast.Assign)
        for target in assigned.targets
        if isinstance(target, ast.Name)
    }
    made += [each for each in script.find(ast.Name) if each.id in named and isinstance(each.ctx, ast.Load)]
    loading = {
        owner.name
        for each in scripts
        for owner in each.find(ast.ClassDef)
        if any(isinstance(part, ast.FunctionDef) and part.name in _LOADS for part in owner.body)
    }
    around = (
        call for each in made for call in script.ancestors(each) if isinstance(call, ast.Call) and each is not call.func
    )
    return any(_last(call.func) in loading or script.qualified(call.func).startswith(_DATA) for call in around)


def own_generators(script: Script) -> Iterator[ast.Assign]:
    """Where a data set of a file makes itself a generator with a seed, by which it draws something for its samples."""
    for owner in script.find(ast.ClassDef):
        used = {_of_self(node) for node in _loading(owner, _LOADS)}
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign) and _of_self(node.targets[0]) in used and _is_seeded(script, node.value):
                yield node


def _is_seeded(script: Script, value: ast.expr) -> bool:
    """Whether a generator is made with a seed: `np.random.default_rng(0)`, `torch.Generator().manual_seed(0)`."""
    calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    makes = any(script.qualified(each.func) in _GENERATORS for each in calls)
    return makes and any(each.args or each.keywords for each in calls)


def _loading(owner: ast.ClassDef, names: Sequence[str]) -> list[ast.AST]:
    """The code of a class by which a sample is loaded: its methods of some names, and those that they call."""
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    waiting = [methods[name] for name in names if name in methods]
    found: list[ast.FunctionDef] = []
    while waiting:
        method = waiting.pop()
        if method not in found:
            found.append(method)
            called = {_of_self(each.func) for each in ast.walk(method) if isinstance(each, ast.Call)}
            waiting += [methods[name] for name in called & methods.keys()]
    return [node for method in found for node in ast.walk(method)]


def _of_class(owner: ast.ClassDef, names: Sequence[str]) -> Iterator[ast.stmt]:
    nodes = _loading(owner, names)
    going_on = {
        node: name for node in nodes if isinstance(node, ast.Assign | ast.AugAssign) and (name := _goes_on(node))
    }
    of_these = {part for node in going_on for part in ast.walk(node)}
    read = {
        _of_self(node)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node not in of_these
    }
    yield from (node for node, name in going_on.items() if name in read)


def _goes_on(node: ast.Assign | ast.AugAssign) -> str:
    """The attribute that gets a value which is made of its last one: `self.count += 1`."""
    if isinstance(node, ast.AugAssign):
        return _of_self(node.target)
    name = _of_self(node.targets[0])
    return name if any(_of_self(part) == name for part in ast.walk(node.value)) else ""


def _of_self(node: ast.AST) -> str:
    """The name of an attribute of self; "" for anything else."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""  # type: ignore[attr-defined]


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
