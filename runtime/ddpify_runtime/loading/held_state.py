"""What a data set holds, and the globals and closures that its code uses: whether loading a sample changes it.

A sample that depends on what was loaded before (a counter, a generator of its own) can only be loaded in one process's
order (HAZARDS D20). What is filled once and then kept, a cache or a file that is opened late, changes no sample; but
the numbers that names get in the order in which they are met do.
"""

from __future__ import annotations

import ctypes
import dis
import io
import os
import pickle
import random
import sys
import sysconfig
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ..torch_internals import version_of

PLAIN = (int, float, complex, str, bytes, bool, type(None))
_LEAVES = (*PLAIN, Tensor, ModuleType, type)
INTO = 100  # a container with more entries holds samples rather than state: it is not followed into
_LOOK = 100_000  # and entries of one with more are not compared
BYTES = {False: 2**10, True: 2**22}  # of an array that is compared: at each batch, at the first ones
_DEPTH = 8
_MOST = 300  # holders, the nearest first: they are looked at around each batch
_OF_VARIABLES = ("_GLOBAL", "_GLOBALS", "_NAME")  # how instructions end that have the name of one
_LIBRARIES = (
    "<frozen",
    os.path.dirname(os.path.dirname(__file__)),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


class Holder(NamedTuple):
    """Something that holds values: its name, and a function that gives them by name.

    own: whether all code that can read them is the user's. seeks: whether what it holds finds its place in a file by
    itself, as an archive does. places: where `values` finds them, for a faster look.
    """

    name: str
    values: Callable[[], Mapping[Any, Any]]
    size: int
    own: bool = False
    seeks: bool = False
    places: Callable[[], Places | None] = lambda: None


class Places(NamedTuple):
    """Where values are.

    whole: mappings and lists. entries: a name, the dict that has it, and its key there. attributes: a name ("" for
    none), what has it, and the attribute there.
    """

    whole: Sequence[Any] = ()
    entries: Sequence[tuple[str, dict[str, Any], str]] = ()
    attributes: Sequence[tuple[str, Any, str]] = ()


_NUMBER_OF_C: Any = ctypes.c_int.__base__
Snapshot = dict[tuple[int, Any], tuple[Any, Any]]  # by the number of what holds it, and its name there


@dataclass
class Reached:
    """All that is reached from some objects: what holds values, and the code of the user's."""

    held: list[Holder] = field(default_factory=list)
    codes: list[CodeType] = field(default_factory=list)
    counted: dict[str, bool] = field(default_factory=dict)  # whether the code does nothing but count by an attribute

    @cached_property
    def seeks(self) -> bool:
        """Whether the code looks for places in files."""
        return any("seek" in code.co_names for code in self.codes)


def reached(*roots: Any) -> Reached:
    """Follow attributes, small containers, and what the user's functions refer to."""
    found = Reached()
    seen: dict[int, Any] = {id(each): each for each in _common_generators()}
    waiting: deque[tuple[str, Any, int]] = deque([("", root, 0) for root in roots])
    while waiting and len(found.held) < _MOST:
        name, value, depth = waiting.popleft()
        if id(value) in seen or depth > _DEPTH or isinstance(value, (*_LEAVES[:-1], *_generators())):
            continue
        seen[id(value)] = value
        for held in _inside(name, value):
            found.held.append(held)
            if held.size <= INTO:
                waiting += [(_name(name, key), each, depth + 1) for key, each in held.values().items()]
        waiting += [(name, part, depth + 1) for part in _behind(value)]
        if isinstance(value, FunctionType) and not _is_library(value.__code__.co_filename):
            found.codes.extend(_codes(value.__code__))
    return found


def _inside(name: str, value: Any) -> Iterator[Holder]:
    if isinstance(value, (dict, list, tuple)):
        entries = value if isinstance(value, dict) else None
        whole = partial(Places, [value])
        yield Holder(name, lambda: dict(enumerate(value)) if entries is None else entries, len(value), places=whole)
    if isinstance(value, FunctionType):
        yield Holder("", lambda: dict(_used(value)), 0, places=partial(_places_used, value))
        if not _is_library(value.__code__.co_filename):
            yield Holder(value.__name__, lambda: vars(value), 0, places=partial(Places, [vars(value)]))
            given = partial(_places_given, value)
            yield Holder(f"{value.__name__}()", lambda: dict(_defaults(value)), 0, places=given)
    elif isinstance(value, type):
        yield Holder(f"{value.__name__}.", lambda: dict(_of_class(value)), 0, places=partial(Places, [vars(value)]))
    elif isinstance(value, ContextVar):
        yield Holder(value.name, lambda: {"get()": value.get(None)}, 0)
    elif isinstance(value, DataLoader):  # whose own function makes its batches: but for how it is loaded
        yield Holder(name, lambda: {key: each for key, each in vars(value).items() if key != "_ddpify"}, 0)
    elif hasattr(value, "__dict__"):
        attributes, own = vars(value), all(map(_is_known_class, type(value).__mro__))
        yield Holder(name, lambda: attributes, 0, own, _is_library_class(type(value)), partial(Places, [attributes]))
    if slots := [slot for each in type(value).__mro__ if not _is_library_class(each) for slot in _slots(each)]:
        yield Holder(name, lambda: {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}, 0)


def _of_class(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(kind).copy().items() if is_of_class(name, value))


def is_of_class(name: Any, value: Any) -> bool:
    """Whether an entry of a class is a value of it: no code, and nothing that Python itself has added later.

    Pickling an object adds `__slotnames__` to its class, in the thread that feeds a worker's queue.
    """
    return name not in ("__slotnames__", "__annotations__") and not is_code(value)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _behind(value: Any) -> Iterator[Any]:
    """The code of the user's that belongs to a value."""
    if isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, type):
        for each in vars(value).values():
            code = getattr(each, "fget", None) or getattr(each, "func", None) or getattr(each, "__func__", each)
            if isinstance(code, FunctionType) and not _is_library(code.__code__.co_filename):
                yield code
    elif not isinstance(value, FunctionType):
        yield from (each for each in type(value).__mro__ if not _is_library_class(each))


def _used(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables outside of a function that it names, with their values now."""
    if _is_library(function.__code__.co_filename):
        return
    for code in _codes(function.__code__):
        for name in _global_names(code):
            if name in function.__globals__:
                value = function.__globals__[name]
                yield name, value
                if value is os and "environ" in code.co_names:
                    yield "os.environ", os.environ
                if isinstance(value, ModuleType) and not _is_library(getattr(value, "__file__", None)):
                    yield from ((f"{name}.{each}", vars(value)[each]) for each in code.co_names if each in vars(value))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _places_used(function: FunctionType) -> Places | None:
    """Where `_used` finds its variables, as long as the modules among them are the same; None where it has to look."""
    if _is_library(function.__code__.co_filename):
        return Places()
    of, entries = function.__globals__, []
    for code in _codes(function.__code__):
        for name in _global_names(code):
            entries.append((name, of, name))
            module = of.get(name)
            if isinstance(module, ModuleType) and not _is_library(getattr(module, "__file__", None)):
                entries += [(f"{name}.{each}", vars(module), each) for each in code.co_names]
    free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    cells = [(name, cell, "cell_contents") for name, cell in free]
    return Places((), entries, cells) if all(hasattr(cell, "cell_contents") for _, cell, _ in cells) else None


def _places_given(function: FunctionType) -> Places:
    """Where `_defaults` finds its values."""
    return Places(
        [dict(_defaults(function))], (), [("", function, name) for name in ("__defaults__", "__kwdefaults__")]
    )


def _defaults(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function takes for arguments that are not given: made once, and kept."""
    yield from (function.__kwdefaults__ or {}).items()
    given = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(names[len(names) - len(given) :], given, strict=True)


def _codes(code: CodeType) -> list[CodeType]:
    """A code and those of the functions in it."""
    found = [code]
    for each in found:
        found += [constant for constant in each.co_consts if isinstance(constant, CodeType)]
    return found


@cache
def _global_names(code: CodeType) -> tuple[str, ...]:
    """The variables outside of a function that its code names. `co_names` has attributes, too: the x of `self.x`."""
    names = (step.argval for step in dis.get_instructions(code) if step.opname.endswith(_OF_VARIABLES))
    return tuple(dict.fromkeys(names))


def is_code(value: Any) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod, property, cached_property))


def _is_library(path: str | None) -> bool:
    return path is None or path.startswith(_LIBRARIES)


def _is_library_class(value: type) -> bool:
    module = sys.modules.get(value.__module__)
    return value.__module__ != "__main__" and _is_library(getattr(module, "__file__", None))


def _is_known_class(value: type) -> bool:
    return value.__module__ in ("builtins", "typing", "torch.utils.data.dataset") or not _is_library_class(value)


def _name(name: str, key: Any) -> str:
    if isinstance(key, str) and key.replace(".", "_").isidentifier():
        return f"{name.removesuffix('.')}.{key}" if name else key
    return f"{name}[{key!r}]"


def snapshot(of: Reached, deep: bool) -> Snapshot:
    """What all of these hold now.

    Args:
        deep: also look at the entries of large containers and arrays.
    """
    taken: Snapshot = {}
    for number, (_, values, size, _, seeks, _) in enumerate(of.held):
        if size > (_LOOK if deep else INTO):
            continue
        most = 0 if size > INTO else BYTES[deep]
        for key, value in values().items():
            by_value = isinstance(value, PLAIN) or (seeks and is_file(value))
            taken[number, key] = (value, None if by_value else state_of(value, most))
    return taken


def state_of(value: Any, most: int) -> Any:
    """What can change in a value that stays the same object; an array is looked at if it has at most `most` bytes."""
    if isinstance(value, Tensor):
        return None if value.is_inference() else version_of(value)
    if isinstance(value, (set, deque)) and len(value) <= INTO:
        return [*map(id, value)]
    if isinstance(value, (dict, list, set, deque)):
        return len(value)
    if isinstance(value, (bytearray, array)):
        return len(value), zlib.crc32(value) if len(value) * getattr(value, "itemsize", 1) <= most else 0
    if isinstance(value, (_NUMBER_OF_C, ctypes.Array, ctypes.Structure)):
        return bytes(value) if ctypes.sizeof(value) <= most else None
    if is_file(value):
        return _position(value)
    if isinstance(value, torch.Generator):
        return bytes(value.get_state().tolist())
    if isinstance(value, random.Random):
        return value.getstate()
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.random.RandomState):
        return pickle.dumps(value.get_state())
    if isinstance(value, numpy.random.Generator):
        return pickle.dumps(value.bit_generator.state)
    if isinstance(value, numpy.ndarray) and not isinstance(value, numpy.memmap) and not value.dtype.hasobject:
        return zlib.crc32(numpy.ascontiguousarray(value)) if value.nbytes <= most else None
    return None


def is_file(value: Any) -> bool:
    return issubclass(type(value), io.IOBase)  # isinstance() raises for what numpy.load() gives for a .npz


def _position(file: Any) -> int | None:
    """How far an open file was read; None if it does not say."""
    try:
        return int(file.tell())
    except (OSError, ValueError):  # a pipe, or text that is read by next(); it is closed
        return None


def _generators() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    kinds: tuple[type, ...] = (random.Random, torch.Generator)
    return kinds if numpy is None else (*kinds, numpy.random.Generator, numpy.random.RandomState)


def _common_generators() -> list[Any]:
    """Those that functions like random.random() draw from: they are watched by themselves."""
    numpy = sys.modules.get("numpy")
    common: list[Any] = [random.random.__self__, torch.default_generator]  # type: ignore[attr-defined]
    return common if numpy is None else [*common, numpy.random.get_state.__self__]


def iterator(of: Reached) -> str:
    """The name of an iterator among them, whose place cannot be seen; "" if there is none."""
    for name, values, size, _, seeks, _ in of.held:
        for key, value in values().items() if size <= INTO else ():
            if is_file(value):
                if value.closed or seeks or of.seeks or _position(value) is not None:
                    continue
            elif not issubclass(type(value), Iterator):
                continue
            return _name(name, key)
    return ""


def changed(of: Reached, before: Snapshot, after: Snapshot) -> tuple[str, bool]:
    """What is different between two snapshots.

    Returns:
        (the name of something that changed, or "", whether something was filled: what was None or not there before, or
        what a dict has gained).
    """
    filled = False
    for place in after:
        if place not in before:
            filled = True
    for place, (old, state) in before.items():
        if place not in after:
            return _name(of.held[place[0]].name, place[1]), filled
        new, state_now = after[place]
        if old is None and new is not None:
            filled = True
        elif old is new and isinstance(new, dict) and state != state_now:
            if state_now < state or _numbers(new):
                return _name(of.held[place[0]].name, place[1]), filled
            filled = True
        elif old is new and is_file(new) and of.seeks:
            continue  # each sample begins at a place of its own
        elif not _same(old, new, state == state_now) and not _is_only_counted(of, place, new):
            return _name(of.held[place[0]].name, place[1]), filled
    return "", filled


def _numbers(filled: Mapping[Any, Any]) -> bool:
    """Whether a dict gives each name the next number when it is met, `classes[name] = len(classes)`."""
    if type(next(reversed(filled.values()), None)) is not int:  # type: ignore[call-overload]
        return False
    numbers = [*filled.values()]
    return any(numbers == [*range(first, first + len(numbers))] for first in (0, 1))


def _same(old: Any, new: Any, same_state: bool) -> bool:
    if old is new:
        return same_state or any(new is each for each in _common_generators())
    return type(old) is type(new) and isinstance(new, PLAIN) and bool(old == new or old != old)


def _is_only_counted(of: Reached, place: tuple[int, Any], value: Any) -> bool:
    """Whether the user's code does nothing with an attribute but `self.name += 1`: no sample can depend on it then."""
    number, name = place
    if type(value) not in (int, float) or not of.held[number].own:
        return False
    if name not in of.counted:
        of.counted[name] = not any(_reads(code, name) for code in of.codes)
    return of.counted[name]


def _reads(code: CodeType, name: str) -> bool:
    if {"__dict__", "vars", "getattr"} & {*code.co_names} or name in code.co_consts:
        return True
    if name not in code.co_names:
        return False
    before = ""
    for step in dis.get_instructions(code):
        if step.argval == name and step.opname.startswith("LOAD_") and before not in ("COPY", "DUP_TOP"):
            return True  # an augmented assignment copies the object first, to store into it later
        before = step.opname
    return False


def put_back(of: Reached, taken: Snapshot) -> None:
    """Undo what loading a sample once more has left in attributes and dicts."""
    for number, (_, values, size, *_) in enumerate(of.held):
        kept = values()
        if isinstance(kept, dict) and size <= _LOOK:
            for key in [key for key in kept if (number, key) not in taken]:
                del kept[key]
            kept.update({key: taken[number, key][0] for key in kept})
