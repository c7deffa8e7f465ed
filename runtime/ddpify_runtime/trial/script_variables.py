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

from ..forward import model_code
from ..forward.libraries import is_installed

_CONTAINERS = (list, dict, set, deque)


@contextmanager
def kept(module: nn.Module) -> Iterator[None]:
    """Put back the variables that the code of a module's classes names, in their files and in the classes.

    Others may be changed by a thread meanwhile. What an object of the script's own holds is changed by a trial.
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
    own = [kind for kind in model_code.classes(module) if not is_installed(kind.__module__.partition(".")[0])]
    files = {file for kind in own if (file := sys.modules.get(kind.__module__)) is not None}
    names = {name for code in model_code.codes(module) for name in code.co_names} if own else set()
    for each in [*files, *own]:
        values = {name: value for name, value in _plain(vars(each)).items() if name in names}
        yield values, lambda before, each=each: _set(each, vars(each), before)  # type: ignore[misc]


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
