"""The numbers outside of a module that the code of its forward names: globals, and attributes of settings.

`if MIX: …` and `if args.epoch > 5: …` may turn a forward to another way as `if self.mix: …` does (M4, M7).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

from ..torch_internals import CALL
from .libraries import is_installed, package

KINDS = (bool, int, float, str)
_RUNTIME = __name__.partition(".")[0]  # not seen to be installed where it is worked on
_MOST = 100  # entries of what holds settings rather than data


def places(modules: Iterable[nn.Module]) -> list[tuple[Mapping[str, Any], str]]:
    """Where they are: a namespace and a name in it.

    Args:
        modules: of the script's own classes, with their parts.
    """
    modules = list(modules)
    # Without the routed call, which keeps numbers of its own: with them each forward looked new after the first.
    waiting: list[Any] = [value for module in modules for name, value in vars(module).items() if name != CALL]
    waiting += [value for module in modules for kind in type(module).__mro__ for value in vars(kind).values()]
    found: dict[tuple[int, str], tuple[Mapping[str, Any], str]] = {}
    held: list[Mapping[str, Any]] = []
    named: set[str] = set()
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        if id(value) in seen or type(value) in KINDS:
            continue
        seen[id(value)] = value
        if function := _function(value):
            if _is_library(package(function)):
                continue
            of: Mapping[str, Any] = function.__globals__
            names = set(_names(function.__code__))
            found |= {(id(of), name): (of, name) for name in names & of.keys() if type(of[name]) in KINDS}
            waiting += [of[name] for name in names & of.keys()]
            waiting += _enclosed(function)
            waiting += [of[name] for of in held for name in (names - named) & of.keys()]
            named |= names
        else:
            new = [*_namespaces(value)]
            waiting += [of[name] for of in new for name in named & of.keys()]
            held += new
    for of in held:
        found |= {(id(of), name): (of, name) for name in named & of.keys() if type(of[name]) in KINDS}
    return [*found.values()]


def _function(value: Any) -> FunctionType | None:
    """The function of the script's that a value is, or calls."""
    if isinstance(value, (staticmethod, classmethod, MethodType)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    """The names in a code and in the functions in it, and the strings, which may be keys."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _names(constant)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """What the function uses of the functions around it."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # nothing is assigned yet
            yield cell.cell_contents


def _namespaces(value: Any) -> Iterator[Mapping[str, Any]]:
    """What a value, and its class, hold by name, if it is one that holds settings."""
    if isinstance(value, (nn.Module, Tensor)):
        return
    if isinstance(value, (type, ModuleType)):
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if not _is_library(home.partition(".")[0]):
            yield vars(value)
        return
    of = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    if isinstance(of, Mapping) and len(of) <= _MOST:
        yield of
        yield from (vars(kind) for kind in type(value).__mro__ if not _is_library(kind.__module__.partition(".")[0]))


def _is_library(package: str) -> bool:
    return package in sys.stdlib_module_names or package == _RUNTIME or is_installed(package)
