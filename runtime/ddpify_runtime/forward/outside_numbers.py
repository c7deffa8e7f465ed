"""The numbers outside of a module that the code of its forward names: globals, and attributes of settings.

`if MIX: …` and `if args.epoch > 5: …` may turn a forward to another way as `if self.mix: …` does (M4, M7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

from .libraries import is_installed, package

KINDS = (bool, int, float, str)
_MOST = 100  # entries of what holds settings rather than data


def places(modules: Iterable[nn.Module]) -> list[tuple[Mapping[str, Any], str]]:
    """Where they are: a namespace and a name in it.

    Args:
        modules: of the script's own classes, with their parts.
    """
    found: dict[tuple[int, str], tuple[Mapping[str, Any], str]] = {}
    held = [value for module in modules for value in vars(module).values()]
    waiting = [*held, *(value for module in modules for kind in type(module).__mro__ for value in vars(kind).values())]
    named: set[str] = set()
    seen: set[FunctionType] = set()
    while waiting:
        function = _function(waiting.pop())
        if function is None or function in seen or is_installed(package(function)):
            continue
        seen.add(function)
        of: Mapping[str, Any] = function.__globals__
        names = set(_names(function.__code__))
        named |= names
        used = [of[name] for name in names & of.keys()]
        found |= {(id(of), name): (of, name) for name in names & of.keys() if type(of[name]) in KINDS}
        waiting += used
        held += used
    for of in map(_namespace, held):
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


def _namespace(value: Any) -> Mapping[str, Any]:
    """What a value holds by name, if it is one that holds settings."""
    if isinstance(value, (nn.Module, Tensor, FunctionType)):
        return {}
    if isinstance(value, (type, ModuleType)):
        of: Mapping[str, Any] = {} if is_installed(value.__name__.partition(".")[0]) else vars(value)
        return of
    of = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return of if isinstance(of, Mapping) and len(of) <= _MOST else {}
