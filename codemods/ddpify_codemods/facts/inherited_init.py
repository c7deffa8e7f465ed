"""Classes that are made by the `__init__` of a library: `class Pair(CIFAR10):` without one of its own, or with one
that hands on to it what it does not know, `super().__init__(**kwargs)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .bindings import arguments
from .script import KEPT, Script
from .tree import walk


def inherited_init(scripts: Sequence[Script]) -> Mapping[Script, frozenset[str]]:
    """The classes of a program that have the `__init__` of a library, by their names, as each file means them."""
    local = {part for script in scripts for part in (script.path.stem, *script.path.parts)}
    bases = {script: _bases(script) for script in scripts}
    known = [each for there in bases.values() for each in there.items()]
    own = {name for name, of in known if not of}
    while more := {name for name, of in known if any(_is_of_program(base, local, own) for base in of)} - own:
        own |= more
    found = frozenset(name for name, _ in known) - own
    return {script: found | _alone(there, local, own) for script, there in bases.items()}


@lru_cache(maxsize=KEPT)
def _bases(script: Script) -> Mapping[str, tuple[str, ...]]:
    """The full names of the bases of the classes of a file; none of those with an `__init__` that hands on nothing."""
    return {
        owner.name: () if _has_init(owner) else tuple(script.qualified(base) for base in owner.bases)
        for owner in script.find(ast.ClassDef)
    }


def _alone(bases: Mapping[str, tuple[str, ...]], local: set[str], own: set[str]) -> frozenset[str]:
    """Those of a file, of whose names other files have other classes."""
    return frozenset(name for name, of in bases.items() if of and not any(_is_of_program(b, local, own) for b in of))


def _is_of_program(base: str, local: set[str], names: set[str]) -> bool:
    """Whether a base is one of some classes of the program."""
    module, _, name = base.rpartition(".")
    return name in names and (not module or module.split(".")[0] in local)


def _has_init(owner: ast.ClassDef) -> bool:
    own = (each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    return any(not _hands_on(each) for each in own)


def _hands_on(init: ast.FunctionDef) -> bool:
    """Whether an `__init__` gives that of the base the keywords which it has no names for, `download` among them."""
    if "download" in arguments(init):
        return False
    rest = init.args.kwarg.arg if init.args.kwarg else ""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "__init__"
        and any(word.arg is None and getattr(word.value, "id", "") == rest for word in call.keywords)
        for call in walk(init)
    )
