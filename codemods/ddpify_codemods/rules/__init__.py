"""The rules: a file per concern, found by being in a folder, which says what programs it is for and what it does.

A folder's own docstring tells. What a program is, and the style that is asked for, choose folders, never single rules;
a folder is imported when it is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import get_args

from ..facts.distribution import Kind
from ..rule import Folder, Rule

FOLDERS: dict[Kind, tuple[Folder, ...]] = {
    "one process": ("always", "devices", "convert", "exact", "refuse", "lint"),
    "eager": ("always", "devices", "retarget", "lint"),
    "torch_xla": ("modernize",),
}


@cache
def _found(folder: Folder) -> list[Rule]:
    path = import_module(f"{__name__}.{folder}").__path__
    modules = (import_module(f"{__name__}.{folder}.{module.name}") for module in iter_modules(path))
    return [replace(module.RULE, folder=folder) for module in modules if hasattr(module, "RULE")]


def in_folders(*folders: Folder) -> tuple[Rule, ...]:
    """The rules of some folders, in the order of their ids."""
    return tuple(sorted((rule for folder in {*folders} for rule in _found(folder)), key=lambda rule: rule.id))


def all_rules() -> tuple[Rule, ...]:
    """The rules of all folders, in the order of their ids."""
    return in_folders(*get_args(Folder))
