"""The code that a forward may run: of the classes of a module and its parts, and what it names."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

_LIBRARIES = {*sys.stdlib_module_names, "torch", __name__.partition(".")[0]}


def classes(module: nn.Module) -> set[type]:
    """The classes of a module and its parts, and those that they are derived from, but for torch's own."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    return {kind for kind in kinds if not _is_of_library(kind.__module__)}


def codes(module: nn.Module) -> list[CodeType]:
    """The code of the methods of these classes, of those of objects that the parts hold, and what all of it names.

    Not of other classes of modules, of which the module might have had parts.
    """
    found: dict[CodeType, None] = {}
    seen: set[Any] = set()
    held = {type(value) for part in module.modules() for value in vars(part).values()}
    waiting: list[Any] = [*classes(module), *(kind for kind in held if not issubclass(kind, nn.Module))]
    while waiting:
        each = waiting.pop()
        each = getattr(each, "fget", None) or getattr(each, "__func__", None) or getattr(each, "__wrapped__", each)
        if not isinstance(each, type | FunctionType) or each in seen or _is_of_library(each.__module__ or ""):
            continue
        seen.add(each)
        if isinstance(each, type):
            waiting += [value for value in vars(each).values() if not isinstance(value, type)]
            continue
        inside = _with_inner(each.__code__)
        found |= dict.fromkeys(inside)
        named = _named({name for code in inside for name in code.co_names}, each.__globals__)
        waiting += [value for value in named if not (isinstance(value, type) and issubclass(value, nn.Module))]
    return [*found]


def _named(names: set[str], variables: dict[str, Any]) -> list[Any]:
    """What names may mean in a file, or in a file that they name: `states.read`."""
    values = [variables[name] for name in names if name in variables]
    files = [vars(value) for value in values if isinstance(value, ModuleType) and not _is_of_library(value.__name__)]
    return values + [file[name] for file in files for name in names if name in file]


def _with_inner(code: CodeType) -> list[CodeType]:
    inner = [each for constant in code.co_consts if isinstance(constant, CodeType) for each in _with_inner(constant)]
    return [code, *inner]


def _is_of_library(file: str) -> bool:
    return file.partition(".")[0] in _LIBRARIES
