"""The code that a forward may run: of the classes of a module and its parts, and what it names in their files."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType
from typing import Any

from torch import nn


def classes(module: nn.Module) -> set[type]:
    """The classes of a module and its parts, and those that they are derived from, but for torch's own."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    return {kind for kind in kinds if not kind.__module__.startswith(("torch.", "builtins", "typing", "abc"))}


def codes(module: nn.Module) -> list[CodeType]:
    """The code of the methods of these classes, and of the functions and classes of their files that this names.

    Not of other classes of modules, of which the module might have had parts.
    """
    kinds = classes(module)
    files = [vars(file) for name in {kind.__module__ for kind in kinds} if (file := sys.modules.get(name)) is not None]
    found: list[CodeType] = []
    seen: set[Any] = set()
    waiting: list[Any] = [*kinds]
    while waiting:
        each = waiting.pop()
        each = getattr(each, "fget", None) or getattr(each, "__func__", None) or getattr(each, "__wrapped__", each)
        if isinstance(each, FunctionType):
            each = each.__code__
        if not isinstance(each, type | CodeType) or each in seen:
            continue
        seen.add(each)
        if isinstance(each, type):
            waiting += [value for value in vars(each).values() if not isinstance(value, type)]
            continue
        found.append(each)
        waiting += each.co_consts
        named = (file.get(name) for name in each.co_names for file in files)
        waiting += [value for value in named if not (isinstance(value, type) and issubclass(value, nn.Module))]
    return found
