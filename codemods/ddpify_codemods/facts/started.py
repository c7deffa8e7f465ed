"""What a script's functions get as processes: the number of the process, and what the starter hands over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .distribution import joins_process_group
from .launch import leading_to
from .script import KEPT, Script

# These start a function with the number of its process before the other arguments.
_NUMBERED = frozenset(
    {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch_xla.launch"}
    | {"torch_xla.distributed.xla_multiprocessing.spawn", "ignite.distributed.spawn"}
)
_PROCESSES = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process"})


@dataclass(frozen=True)
class Start:
    """One call that starts a function in processes.

    function: its name. given: its arguments. numbered: whether the number of the process comes before them.
    """

    call: ast.Call
    function: str
    given: tuple[ast.expr, ...]
    numbered: bool


@lru_cache(maxsize=KEPT)
def starts(script: Script) -> tuple[Start, ...]:
    """The calls of a file that start processes."""
    return tuple(start for call in script.find(ast.Call) if (start := _start(script, call)) is not None)


def starts_of_group(script: Script) -> tuple[Start, ...]:
    """Those that start the processes of a group: by number, or what they start is seen to join it."""
    names = leading_to(script, [call for call in script.find(ast.Call) if joins_process_group(script, call)])
    return tuple(start for start in starts(script) if start.numbered or start.function in names)


def _start(script: Script, call: ast.Call) -> Start | None:
    name = script.qualified(call.func)
    options = {word.arg: word.value for word in call.keywords}
    if name in _PROCESSES:
        return _made(call, options.get("target"), options.get("args"), numbered=False)
    if name in _NUMBERED:
        places = list(call.args)
        return _made(call, options.get("fn", places[0] if places else None), options.get("args", _at(places, 1)), True)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "run" and "ignite.distributed" in _modules(script):
        return _made(call, _at(list(call.args), 0), ast.Tuple(list(call.args[1:])), numbered=True)  # idist.Parallel
    return None


def _made(call: ast.Call, function: ast.expr | None, given: ast.expr | None, numbered: bool) -> Start | None:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    elements = tuple(given.elts) if isinstance(given, (ast.Tuple, ast.List)) else ()
    return Start(call, name, elements, numbered) if name else None


def _at(values: list[ast.expr], place: int) -> ast.expr | None:
    return values[place] if place < len(values) else None


def _modules(script: Script) -> set[str]:
    return set(script.imported.values())


def handed_over(script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[ast.expr]:
    """What a parameter gets from those who start the function in processes."""
    for start, place in _places(script, function, name):
        if 0 <= place < len(start.given):
            yield start.given[place]


def is_number_of_process(script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a parameter is the process's number: the first that spawn gives, or the counter of a loop of starts."""
    for start, place in _places(script, function, name):
        if place < 0:
            return True
        value = start.given[place] if place < len(start.given) else None
        if isinstance(value, ast.Name) and value.id in _counters(script, start.call):
            return True
    return False


def _places(script: Script, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[tuple[Start, int]]:
    """Where in the arguments that a start hands over a parameter stands; -1 for the number of the process."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    for start in starts(script):
        if start.function == function.name and name in names:
            yield start, names.index(name) - start.numbered


def _counters(script: Script, call: ast.Call) -> set[str]:
    """The loop variables around a call, comprehensions included."""
    targets = [parent.target for parent in script.ancestors(call) if isinstance(parent, ast.For)]
    for parent in script.ancestors(call):
        if isinstance(parent, (ast.ListComp, ast.GeneratorExp)):
            targets += [part.target for part in parent.generators]
    return {target.id for target in targets if isinstance(target, ast.Name)}
