"""The variables of the script, and of its classes, which a trial leaves as they were.

A trial computes a forward some times more than the script does: a list that each call makes longer, or a number that
counts the calls, would not be what it is in one process.
"""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from ..forward.libraries import is_installed

_CONTAINERS = (list, dict, set, deque)
_OF_OTHERS = {*sys.stdlib_module_names, __name__.partition(".")[0]}


@contextmanager
def kept(module: nn.Module) -> Iterator[None]:
    """Leave alone the variables of the files that the classes of a module are from, and what those of a kind hold.

    What is held by something else, such as an object of the script's own, is changed by a trial.
    """
    before = [(put, dict(values), [*_contents(values)]) for values, put in _variables(module)]
    try:
        yield
    finally:
        for put, values, contents in before:
            for container, content in contents:
                _put_back(container, content)
            put(values)


def _variables(module: nn.Module) -> Iterator[tuple[dict[str, Any], Callable[[dict[str, Any]], None]]]:
    """The variables of each file and class, and what puts back those that are others now."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    own = [kind for kind in kinds if _is_own(kind.__module__.partition(".")[0])]
    for file in {file for kind in own if (file := sys.modules.get(kind.__module__)) is not None}:
        yield _plain(vars(file)), lambda before, file=file: _set(file, vars(file), before)  # type: ignore[misc]
    for kind in own:
        yield _plain(vars(kind)), lambda before, kind=kind: _set(kind, vars(kind), before)  # type: ignore[misc]


def _is_own(package: str) -> bool:
    return package not in _OF_OTHERS and not is_installed(package)


def _plain(values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not name.startswith("__") and not callable(value)}


def _set(where: Any, now: Any, before: dict[str, Any]) -> None:
    for name, value in before.items():
        if now.get(name) is not value:
            setattr(where, name, value)


def _contents(values: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for value in values.values():
        if type(value) in _CONTAINERS:
            yield value, value.copy()


def _put_back(container: Any, content: Any) -> None:
    pairs = [(container, content)]
    if isinstance(container, dict):
        pairs = [(container.keys(), content.keys()), (container.values(), content.values())]
    if len(container) == len(content) and all(all(map(operator.is_, *pair)) for pair in pairs):
        return
    container.clear()
    (container.extend if isinstance(container, list | deque) else container.update)(content)
