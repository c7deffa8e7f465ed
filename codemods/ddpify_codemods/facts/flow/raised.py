"""What a program may raise, or write, where it is not followed: by names and texts, so rather once too often."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ..called_modules import last_name
from ..effects import effects
from ..script import KEPT, Script

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# The methods of data that Python and the workers of loaders call.
_OF_DATA = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__", "__call__"})
_ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
# What raises where a file is not there, or is another one; where a number is none.
_READS = frozenset(
    {"open", "File", "load", "loads", "loadtxt", "load_state_dict", "load_model", "load_checkpoint", "imread"}
    | {"from_pretrained", "load_from_checkpoint", "iterdir", "listdir", "detect_anomaly", "set_detect_anomaly"}
)
_ASKS_ABOUT_PATHS = frozenset(
    {f"os.path.{name}" for name in ("join", "exists", "isfile", "isdir", "basename", "dirname", "splitext", "abspath")}
    | {"os.getenv", "os.environ.get", "os.cpu_count", "os.getpid", "os.path.expanduser", "os.path.normpath"}
)


class _OfTorch(RuntimeError):
    """torch.OutOfMemoryError, which no other exception is that a program raises by another name."""


def raised_by(calls: Iterable[ast.Call]) -> set[str]:
    """What calls raise as others return: `next(batches)`, `sys.exit()`."""
    found = set()
    for call in calls:
        name = last_name(call.func)
        if name == "__next__" or (ast.unparse(call.func) == "next" and len(call.args) == 1):
            found.add("StopIteration")
        if ast.unparse(call.func) in _ENDS:
            found.add("SystemExit")
    return found


def read_files(calls: Iterable[ast.Call]) -> bool:
    """Whether some calls read files, or look for them."""
    for call in calls:
        name, full = last_name(call.func), ast.unparse(call.func)
        if name in _READS or name.startswith("read") or (full.startswith("os.") and full not in _ASKS_ABOUT_PATHS):
            return True
    return False


def may_be_among(raised: Iterable[str], taken: Iterable[str]) -> bool:
    """Whether exceptions of some names, "" for any, may be among those that a handler takes."""
    kinds = tuple(_OfTorch if "." in name else getattr(builtins, name, BaseException) for name in taken)
    for name in raised:
        kind = getattr(builtins, name, None)
        if not isinstance(kind, type) or issubclass(kind, kinds):
            return True
    return False


@lru_cache(maxsize=KEPT)
def raises_unseen(scripts: tuple[Script, ...]) -> bool:
    """Whether functions raise that a library calls: of data, or given to it (`signal.signal(signal.SIGALRM, late)`)."""
    called = {call.func for script in scripts for call in script.find(ast.Call)}
    names = (node for script in scripts for node in script.find(ast.Name, ast.Attribute) if node not in called)
    given = {last_name(node) for node in names if isinstance(node.ctx, ast.Load)}
    inner = {last_name(node) for script in scripts for each in script.find(ast.Lambda) for node in _names(each)}
    starts = [
        each
        for name, definitions in _definitions(scripts).items()
        for each in definitions
        if isinstance(each, _FUNCTIONS) and (name in _OF_DATA or name in given | inner)
    ]
    raising = (part for each in _with_what_they_name(scripts, starts) for part in ast.walk(each))
    return any(isinstance(part, ast.Assert) or (isinstance(part, ast.Raise) and part.exc) for part in raising)


def writes_by_own(scripts: tuple[Script, ...], handler: ast.ExceptHandler) -> bool:
    """Whether a handler writes files, itself or by functions of the program, but for those that train again."""
    written = {call for script in scripts for call in effects(script)}
    own = [each for node in _names(handler) for each in _definitions(scripts).get(last_name(node), ())]
    for start in (handler, *own):
        everything = _with_what_they_name(scripts, [start] if start in own else [])
        writes = any(part in written for each in (start, *everything) for part in ast.walk(each))
        if writes and (start is handler or not _trains(scripts, start)):
            return True
    return False


def _trains(scripts: tuple[Script, ...], start: ast.AST) -> bool:
    """Whether a function comes to a backward pass by calls that can be of nothing but the program."""
    modules = {"self"}.union(*(script.imported for script in scripts))
    found, waiting = {start}, [start]
    while waiting:
        for call in ast.walk(waiting.pop()):
            func = call.func if isinstance(call, ast.Call) else None
            if isinstance(func, ast.Attribute):
                if func.attr == "backward":
                    return True
                if not isinstance(func.value, ast.Name) or func.value.id not in modules:
                    continue
            new = [each for each in _definitions(scripts).get(last_name(func), ()) if each not in found] if func else []
            found.update(new)
            waiting += new
    return False


def _names(node: ast.AST) -> list[ast.expr]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]


@lru_cache(maxsize=KEPT)
def _definitions(scripts: tuple[Script, ...]) -> Mapping[str, list[ast.AST]]:
    """The functions, methods and classes of a program, by their names."""
    found: dict[str, list[ast.AST]] = {}
    for script in scripts:
        for node in script.find(*_FUNCTIONS, ast.ClassDef):
            found.setdefault(node.name, []).append(node)
    return found


def _with_what_they_name(scripts: tuple[Script, ...], starts: Sequence[ast.AST]) -> list[ast.AST]:
    """Some functions, and those that they name, and that these name."""
    found, own = dict.fromkeys(starts), _definitions(scripts)
    waiting = [*starts]
    while waiting:
        for node in _names(waiting.pop()):
            new = [each for each in own.get(last_name(node), ()) if each not in found]
            found.update(dict.fromkeys(new))
            waiting += new
    return [*found]
