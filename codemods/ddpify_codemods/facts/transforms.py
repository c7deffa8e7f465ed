"""Which classes of a program make transforms of samples: what they do is done for each sample."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeGuard

from .called_modules import last_name
from .script import KEPT, Script

_CHAINS = frozenset({"Compose", "OneOf", "SomeOf", "RandomApply", "RandomChoice", "RandomOrder"})
_TRANSFORM = re.compile("transform(?!er)|augment", re.IGNORECASE)  # how what holds a transform is called


def calls_of_transforms(scripts: Sequence[Script], within: Script) -> list[ast.FunctionDef]:
    """The methods of a file by which transforms are called, as far as some files show that they are used as such."""
    sets = _data_sets(scripts)
    names = {name for script in scripts for name in _transforms(script, sets)}
    classes = (each for each in within.find(ast.ClassDef) if each.name in names)
    return [each for cls in classes for each in cls.body if _is_called(each)]


def may_be_called_for_samples(scripts: Sequence[Script], within: Script) -> list[ast.FunctionDef]:
    """The methods of a file by which objects are called that are no modules, nor called in steps: where a program has
    data sets of its own, these may call any of them."""
    given = calls_of_transforms(scripts, within)
    if not _data_sets(scripts):
        return given
    of_steps = frozenset[str]().union(*map(_called_in_steps, scripts))
    classes = [cls for cls in within.find(ast.ClassDef) if not any("Module" in ast.unparse(one) for one in cls.bases)]
    own = [each for cls in classes if cls.name not in of_steps for each in cls.body if _is_called(each)]
    return [*dict.fromkeys([*own, *given])]


def _is_called(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Whether it is what a call of an object runs; `forward` may be that of a model, `self.transform = Head(…)`."""
    return isinstance(node, ast.FunctionDef) and node.name == "__call__"


@lru_cache(maxsize=KEPT)
def _called_in_steps(script: Script) -> frozenset[str]:
    """The classes of which a function calls an object that computes a backward pass: `x, y = mixup(x, y)`."""
    made: dict[str, set[str]] = {}
    for stored in script.find(ast.Assign):
        if isinstance(stored.value, ast.Call):
            for target in stored.targets:
                made.setdefault(last_name(target), set()).add(last_name(stored.value.func))
    calls = [*script.find(ast.Call)]
    steps = {script.scope(call) for call in calls if last_name(call.func) == "backward"}
    named = {last_name(call.func) for call in calls if script.scope(call) in steps}
    return frozenset(name for each in named for name in made.get(each, ()))


def _data_sets(scripts: Sequence[Script]) -> frozenset[str]:
    """The names of classes that give samples."""
    return frozenset[str]().union(*map(_data_sets_of, scripts))


@lru_cache(maxsize=KEPT)
def _data_sets_of(script: Script) -> frozenset[str]:
    gives = (
        each
        for each in script.find(ast.ClassDef)
        if any(getattr(part, "name", "") == "__getitem__" for part in each.body)
    )
    return frozenset(each.name for each in gives)


@lru_cache(maxsize=KEPT)
def _transforms(script: Script, data_sets: frozenset[str]) -> frozenset[str]:
    return frozenset(_made(script, data_sets))


def _made(script: Script, data_sets: frozenset[str]) -> Iterator[str]:
    """The names of the classes of which a file makes transforms of samples: those in `Compose([…])`, that a data set is
    given, or that are kept as `self.transform`; and all classes of a file that is called so, or has a Compose."""
    own = [each.name for each in script.find(ast.ClassDef)]
    if _holds_transform(script.path.stem) or not _CHAINS.isdisjoint(own):
        yield from own
    for call in script.find(ast.Call):
        name = last_name(call.func)
        for parent in (script.parents[call], *script.ancestors(call)):
            if isinstance(parent, ast.Call) and last_name(parent.func) in _CHAINS | data_sets:
                yield name
            if isinstance(parent, ast.keyword) and _holds_transform(parent.arg or ""):
                yield name
            if isinstance(parent, ast.Assign) and any(_holds_transform(last_name(each)) for each in parent.targets):
                yield name
            if isinstance(parent, ast.stmt):
                break


def _holds_transform(name: str) -> bool:
    return _TRANSFORM.search(name) is not None
