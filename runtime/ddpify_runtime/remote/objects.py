"""Objects that live on rank 0 alone (a logger's run, a study, a database), and what they give back to all ranks.

Every rank runs the whole script, so each reads the same values at the same places. Rank 0 leaves what it reads in the
store, under the object, what is read, and how often it was read before; the others take it from there. What rank 0
reads alone disturbs nobody. What the script throws away (`run.log(…)` as a statement) is not sent, so that a rank may
come there more often than another, by its own clock say; only where a file is complete, or where the script would catch
what rank 0's object raises, do the others wait for rank 0.
"""

from __future__ import annotations

import inspect
import io
import operator
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from itertools import count
from opcode import opmap, opname
from typing import Any

import torch.distributed as dist

from ..forward import region
from ..lazy.batch import wholes
from . import called_back
from .caught import may_be_caught
from .values import from_rank_zero, is_data, next_key

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, classmethod, staticmethod)
_ELSEWHERE = object()
_END = object()
_COMPLETE = frozenset({"close", "release", "save"})  # a file, which ranks may read next
_UNSENT = ""  # the name of what was thrown away
_MANY, _LARGE = 10_000, 10_000  # places, bytes

_numbers = count()
_seen: dict[str, Any] = {}  # what each place gave last, if it may be a setting: small, and not too many


class Remote:
    """An object of rank 0. What is done to it is done there; data that comes of it is on every rank.

    Beside data (numbers, texts, dates, paths, tensors, models, containers of these) all that comes of it is remote too.
    A function of the script that is handed to it (`study.optimize(objective)`) runs on every rank when rank 0 calls it.
    """

    __slots__ = ("_ddpify_kind", "_ddpify_name", "_ddpify_object", "_ddpify_process")

    def __init__(self, name: str, kind: type | None, value: Any = _ELSEWHERE) -> None:
        for slot, content in zip(Remote.__slots__, (kind, name, value, os.getpid()), strict=True):
            object.__setattr__(self, slot, content)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance answers as for the object itself
        return self._ddpify_kind or Remote

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _is_method(self._ddpify_kind, name):
            value = _ELSEWHERE if self._ddpify_object is _ELSEWHERE else getattr(self._ddpify_object, name)
            return Remote(f"{self._ddpify_name}.{name}", types.MethodType, value)
        return _read(self, f".{name}", lambda value: getattr(value, name))

    def __setattr__(self, name: str, value: Any) -> None:
        _do(self, lambda target: setattr(target, name, unwrapped(value)))

    def __delattr__(self, name: str) -> None:
        _do(self, lambda target: delattr(target, name))

    def __setitem__(self, key: Any, value: Any) -> None:
        _do(self, lambda target: operator.setitem(target, unwrapped(key), unwrapped(value)))

    def __delitem__(self, key: Any) -> None:
        _do(self, lambda target: operator.delitem(target, unwrapped(key)))

    def __bool__(self) -> bool:
        kind = self._ddpify_kind
        if kind is not None and not hasattr(kind, "__bool__") and not hasattr(kind, "__len__"):
            return True
        return bool(_read(self, " bool", bool))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = unwrapped(wholes(args)), unwrapped(wholes(kwargs))
        thrown_away = _is_thrown_away(sys._getframe(1))
        if called_back.functions(args, kwargs) and _everywhere(self):
            here = self._ddpify_object is not _ELSEWHERE
            key = next_key(f"{self._ddpify_name}()")
            return called_back.drive(key, here, self._ddpify_object, args, kwargs, lambda value: packed(value))
        completes = self._ddpify_name.rpartition(".")[2] in _COMPLETE and _everywhere(self)
        if thrown_away and not completes:
            return _do(self, lambda function: function(*args, **kwargs))
        return _read(self, "()", lambda function: function(*args, **kwargs))

    def __enter__(self) -> Any:
        return _read(self, " with", lambda value: value.__enter__())

    def __exit__(self, *exception: Any) -> Any:
        if exception[0] is None and _everywhere(self):
            return _read(self, " exit", lambda value: value.__exit__(*exception))
        return None if self._ddpify_object is _ELSEWHERE else self._ddpify_object.__exit__(*exception)

    def __iter__(self) -> Iterator[Any]:
        items = _read(self, " iter", lambda value: _Items(iter(value)))
        while True:
            item = _read(items, " next", lambda value: [each for _, each in zip(range(1), value.items, strict=False)])
            if not item:
                return
            yield item[0]

    def keys(self) -> Any:
        """Also for dict(…) and `**`, which call it themselves."""
        return _read(self, " keys", lambda value: list(value.keys()))

    def __deepcopy__(self, memo: Any) -> Any:
        return _read(self, " copy", deepcopy)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._ddpify_object is _ELSEWHERE:  # in a file that goes nowhere
            return Remote, (self._ddpify_name, self._ddpify_kind)
        return self._ddpify_object.__reduce_ex__(protocol)

    def __hash__(self) -> int:
        return hash(self._ddpify_name)


def _operation(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: Remote, *others: Any) -> Any:
        others = unwrapped(others)
        what = f" {name} {others!r}" if is_data(others) else f" {name}"
        return _read(self, what, lambda value: function(value, *others))

    return operate


for _name in ("lt", "le", "eq", "ne", "gt", "ge", "add", "sub", "mul", "truediv", "mod", "and", "or", "getitem"):
    setattr(Remote, f"__{_name}__", _operation(_name, getattr(operator, f"__{_name}__")))
for _function in (len, str, repr, format, int, float):
    setattr(Remote, f"__{_function.__name__}__", _operation(_function.__name__, _function))
setattr(Remote, "__contains__", _operation("contains", operator.contains))  # noqa: B010
setattr(Remote, "__fspath__", _operation("fspath", os.fspath))  # noqa: B010


_SETTINGS = (Remote, type(None), bool, int, float, str, list, tuple, dict)


class _Items:
    def __init__(self, items: Iterator[Any]) -> None:
        self.items = items


def packed(value: Any) -> tuple[Any, Any]:
    """What rank 0 goes on with in place of a value, and what the others get: copies of data, remotes of all else."""
    if is_data(value):
        return value, value
    if type(value) in (list, tuple):
        pairs = list(map(packed, value))
        return type(value)(pair[0] for pair in pairs), type(value)(pair[1] for pair in pairs)
    if type(value) is dict and is_data(list(value)):
        pairs = list(map(packed, value.values()))
        here, there = ([pair[index] for pair in pairs] for index in (0, 1))
        return dict(zip(value, here, strict=True)), dict(zip(value, there, strict=True))
    if type(value) is not Remote and isinstance(value, io.IOBase):
        return value, _Nowhere("w" if isinstance(value, io.TextIOBase) else "wb")
    kind: Any = type(value)
    remote = value if kind is Remote else Remote(str(next(_numbers)), _kind(kind), value)
    return remote, _Reference(remote)


def unwrapped(value: Any) -> Any:
    """A value with the objects themselves in place of remotes, where they are."""
    if type(value) is Remote:
        return value if value._ddpify_object is _ELSEWHERE else value._ddpify_object
    if type(value) in (list, tuple, dict) and not is_data(value):
        if type(value) is dict:
            return {key: unwrapped(each) for key, each in value.items()}
        return type(value)(map(unwrapped, value))
    return value


class _Reference:
    """A remote on its way to the other ranks."""

    def __init__(self, remote: Remote) -> None:
        self.place = remote._ddpify_name, remote._ddpify_kind

    def __reduce__(self) -> Any:
        return Remote, self.place


class _Nowhere:
    """A file on its way to the other ranks, where what is written to it goes nowhere."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def __reduce__(self) -> Any:
        return open, (os.devnull, self.mode)


@lru_cache
def _kind(kind: Any) -> Any:
    """The class of an object, if the other ranks can import it, else None."""
    try:
        pickle.dumps(kind)
    except Exception:  # noqa: BLE001  a class made in a function, a metaclass of its own
        return None
    return kind


@lru_cache(maxsize=4096)
def _is_method(kind: Any, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), _FUNCTIONS)


def _everywhere(remote: Remote) -> bool:
    """Whether all ranks are here."""
    if region.alone_for_good() or region.loading() or isinstance(sys.exc_info()[1], KeyboardInterrupt):
        return False
    return dist.is_initialized() and os.getpid() == remote._ddpify_process


def _read(remote: Remote, what: str, function: Callable[[Any], Any]) -> Any:
    value, place = remote._ddpify_object, f"{remote._ddpify_name}{what}"
    here = value is not _ELSEWHERE
    if not _everywhere(remote) or remote._ddpify_name is _UNSENT:
        if here:
            return function(value)
        if place in _seen:
            return _seen[place]
        raise RuntimeError(
            f"ddpify: {what.strip()!r} of an object that lives on rank 0 is read where the processes do not meet: "
            "while samples are loaded, after the end, or by a library; read it before, in a line of its own"
        )

    def answer() -> tuple[Any, Any]:
        with region.on_one_rank():
            result = function(value)
        if result is value:
            result = remote
        elif place in _seen and type(_seen[place]) is Remote and _seen[place]._ddpify_object is result:
            result = _seen[place]  # under the same name, so that names do not become ever more
        return packed(result)

    given = from_rank_zero(next_key(place), here, answer)
    if type(given) in _SETTINGS and sys.getsizeof(given) < _LARGE:
        if len(_seen) >= _MANY:
            _seen.clear()
        _seen[place] = given
    return given


def _do(remote: Remote, function: Callable[[Any], Any]) -> Any:
    """What the script does to an object without asking for a result; what it would catch is raised on every rank."""
    if may_be_caught(sys._getframe(2)) and _everywhere(remote):
        return _read(remote, " do", lambda target: (function(target), None)[1])
    if remote._ddpify_object is _ELSEWHERE:
        return Remote(_UNSENT, None)
    with region.on_one_rank():
        return function(remote._ddpify_object)


_ends: dict[tuple[types.CodeType, int], bool] = {}


def _is_thrown_away(frame: types.FrameType) -> bool:
    """Whether the call that a frame makes is a statement: its result is popped from the stack at once."""
    place = frame.f_code, frame.f_lasti
    if place not in _ends:
        code, cache = frame.f_code.co_code, opmap.get("CACHE")
        begin, end = frame.f_lasti, frame.f_lasti + 2
        while code[begin] == cache:
            begin -= 2
        while code[end] == cache:
            end += 2
        _ends[place] = "CALL" in opname[code[begin]] and code[end] == opmap["POP_TOP"]
    return _ends[place]
