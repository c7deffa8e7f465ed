"""Functions of the script that a library calls on rank 0, such as the objective of a search: every rank runs them.

While rank 0 is in the library, the others wait for its word: which function to call, with what; and the result at the
end. Within the function all ranks are together again, as everywhere else in the script.
"""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
import threading
import types
from collections.abc import Callable
from typing import Any

from torch import nn

from ..agreement import random_states
from ..forward import region
from ..lazy.batch import wholes
from .values import receive, send, travelling

_LIBRARIES = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    site.getusersitepackages(),
)
_Packed = Callable[[Any], tuple[Any, Any]]


def functions(args: tuple[Any, ...], kwargs: dict[str, Any], objects: bool = True) -> list[Any]:
    """The arguments that are functions of the script, also in lists; with `objects` also what has a __call__ there."""
    values: list[Any] = []
    for value in (*args, *kwargs.values()):
        values += value if type(value) in (list, tuple) else [value]
    return [value for value in values if _is_of_the_script(value, objects)]


def _is_of_the_script(value: Any, objects: bool) -> bool:
    while isinstance(value, (functools.partial, types.MethodType)):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    if not isinstance(value, types.FunctionType):
        call = getattr(type(value), "__call__", None)  # noqa: B004  of the class: a proxy has any attribute
        if not objects or isinstance(value, (type, nn.Module)) or not isinstance(call, types.FunctionType):
            return False
        value = call
    return not is_library(getattr(sys.modules.get(value.__module__), "__file__", None) or "", value.__module__)


def is_library(path: str, module: str) -> bool:
    """Whether the code of a file, which is that module, is none of the script."""
    return path.startswith(_LIBRARIES) or module.startswith("ddpify_runtime.")


def drive(key: str, here: bool, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], packed: _Packed) -> Any:
    """Call a function on rank 0, and what it calls of the script on every rank.

    Args:
        key: of this call. here: whether this is rank 0. packed: see remote.packed.
    Raises:
        Exception: that the function raises, on every rank, whatever rank 0 raised.
    """
    return _Lead(key, packed).run(function, args, kwargs) if here else _follow(key, functions(args, kwargs))


class _Lead:
    """Rank 0's side of one call."""

    def __init__(self, key: str, packed: _Packed) -> None:
        self.key, self.packed = key, packed
        self.posts = 0
        self.is_open = True
        self.lock = threading.RLock()  # a library may call from several threads: one after the other
        self.state = random_states.key()

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called = functions(args, kwargs)

        def shared(value: Any) -> Any:
            if type(value) in (list, tuple):
                return type(value)(map(shared, value))
            numbers = [number for number, each in enumerate(called) if each is value]
            return self.shared(numbers[0], value) if numbers else value

        try:
            with region.on_one_rank():
                result = function(*map(shared, args), **{name: shared(value) for name, value in kwargs.items()})
            local, sent = self.packed(result)
        except Exception as error:
            self.post("raised", travelling(error))
            raise
        finally:
            self.is_open = False
        self.post("returned", sent)
        return local

    def shared(self, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.is_open:  # later, by a thread of the library: the others are elsewhere
                return function(*args, **kwargs)
            with self.lock, region.on_all_ranks():
                (args, kwargs), sent = self.packed((args, kwargs))
                self.post("call", (number, sent))
                try:
                    result = wholes(function(*args, **kwargs))
                except Exception as error:
                    self.post("raised", travelling(error))
                    raise
                self.post("returned", None)
                self.state = random_states.key()
                return result

        return call

    def post(self, what: str, content: Any) -> None:
        drawn = random_states.key() != self.state
        self.posts += 1
        send(f"{self.key} {self.posts}", (what, content, random_states.read() if drawn else None))


def _follow(key: str, called: list[Callable[..., Any]]) -> Any:
    posts = 0

    def word() -> tuple[str, Any]:
        nonlocal posts
        posts += 1
        what, content, states = receive(f"{key} {posts}")
        if states is not None:
            random_states.write(states)
        return what, content

    while True:
        what, content = word()
        if what == "raised":
            raise content
        if what == "returned":
            return content
        number, (args, kwargs) = content
        mine: Exception | None = None
        try:
            wholes(called[number](*args, **kwargs))  # which rank 0's library may read
        except Exception as error:  # noqa: BLE001  rank 0's is the library's to handle
            mine = error
        what, theirs = word()
        if what == "returned" and mine is not None:
            raise mine
        if what == "raised" and mine is None:
            raise theirs
