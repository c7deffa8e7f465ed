"""Calls of ddpify_codemods, on all cores when there is enough to do; what goes wrong comes back as a problem."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from ddpify_codemods import ConversionBug, Result, SourceError, convert
from ddpify_codemods.folders import remembered
from ddpify_codemods.imports import local_modules
from ddpify_codemods.search_path import Added, added_folders

from ddpify.files import BadInput, Problem, Source

Item = TypeVar("Item")
Value = TypeVar("Value")

# Starting workers takes about as long as converting this many scripts.
FEW = 8

_PYTHON_2 = re.compile(
    r"""^\s*print\s+[\w"'%]|^\s*print\s*>>|^\s*exec\s+[\w"']|^\s*raise\s+[\w.]+\s*,|^\s*except\s+[\w.()\s,]+,\s*\w+\s*:"""
    r"""|\bur["']|<>|\b0[0-7]+\b|\b\d+L\b|`\w+`""",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Converted:
    """What became of one program: the result of each file, or the problem that stopped it."""

    results: Mapping[Path, Result]
    problem: Problem | None = None


def convert_program(sources: Sequence[Source], target: str, roots: Sequence[Path] = (), **options: Any) -> Converted:
    """Convert one program; whatever it contains, nothing is raised.

    Args:
        sources: its files, the entry first. target: what for. roots: where its absolute imports are found.
        options: further ones of ddpify_codemods.convert.
    Returns:
        The results by path, or a problem.
    """
    names = {source.path: source.name for source in sources}
    try:
        return Converted(convert({source.path: source.text for source in sources}, target, roots=roots, **options))
    except SourceError as error:
        text = next((source.text for source in sources if source.path == error.path), "")
        return Converted({}, _syntax_problem(names.get(error.path, str(error.path)), error.line, error.message, text))
    except (RecursionError, MemoryError):
        remedy = "split its longest expressions or deepest blocks"
        return Converted({}, Problem(sources[0].name, 0, "nested too deeply to be read", remedy))
    except ConversionBug as error:
        return Converted({}, _bug(sources[0].name, str(error)))
    except Exception as error:  # noqa: BLE001 (a bug of ours: nothing is written, and one line says what to report)
        return Converted({}, _bug(sources[0].name, f"{type(error).__name__}: {error}{_place(error)}"))


def _syntax_problem(name: str, line: int, message: str, text: str) -> Problem:
    lines = re.split(r"\r\n|\r|\n", text)
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    what = message.strip().split("\n")[0]
    if _PYTHON_2.search(here):
        return Problem(name, line, f"{what} (this looks like Python 2)", "port it to Python 3 first")
    return Problem(name, line, what, "correct it first")


def _bug(name: str, what: str) -> Problem:
    return Problem(name, 0, f"a bug of ddpify: {' '.join(what.split())}", "nothing was written, please report it")


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""


def imports_of(source: Source, root: Path | None = None, starts: bool = True) -> list[Path]:
    """The local modules that a file imports directly, by their real paths; none if it does not parse.

    Args:
        source: the file. root: where absolute imports start; default: its folder. starts: whether it may be what is
            started, so that what stands below its main guard counts.
    """
    try:
        return [_real(module) for module in local_modules(source.path, source.text, root, starts)]
    except (RecursionError, MemoryError):
        return []  # converting the program that it belongs to says what is wrong


@remembered
def _real(path: Path) -> Path:
    return path.resolve()


def added_of(source: Source) -> list[Added]:
    """The folders that a file puts on sys.path; none if it does not parse."""
    try:
        return added_folders(source.path, source.text, Path.cwd())
    except (RecursionError, MemoryError):
        return []


def on_all_cores(
    function: Callable[[Item], Value], items: Sequence[Item], files: Callable[[Item], Sequence[Source]]
) -> list[Value]:
    """The value of each item, in order; computed by several processes if there are many items.

    Args:
        function: gives the value. items: programs. files: gives the files of one; where programs share many of them,
            they go to one process, which understands these once.
    Raises:
        BadInput: a process died (out of memory, as a rule).
    """
    groups = [] if len(items) <= FEW else divided([files(item) for item in items], os.cpu_count() or 1)
    if len(groups) <= 1:
        return [function(item) for item in items]
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    import ddpify_codemods.rewrite
    import ddpify_codemods.rules  # noqa: F401 (once, here: where processes are forked they have it)

    stop = multiprocessing.Event()
    try:
        with ProcessPoolExecutor(len(groups), initializer=_listen_to, initargs=(stop,)) as pool:
            with _interrupts_held_back():  # the workers keep it so: Ctrl-C is the parent's business, and said once
                parts = [pool.submit(_values, function, [items[place] for place in group]) for group in groups]
            try:
                values = [part.result() for part in parts]
            finally:
                stop.set()
    except BrokenProcessPool as error:
        raise BadInput("ddpify", "a worker process died", "give fewer files at a time") from error
    pairs = zip(chain(*groups), chain(*values), strict=True)
    return [value for _, value in sorted(pairs, key=itemgetter(0))]


def divided(programs: Sequence[Sequence[Source]], most: int) -> list[list[int]]:
    """The places of programs, divided among processes: what they share is worth being understood once.

    Args:
        programs: the files of each. most: how many processes there may be.
    Returns:
        Groups. A program goes where the work (in characters) is least, and what is new there counts twice: another
        process is begun when the first has as much work of its own as that one would repeat.
    """
    groups: list[list[int]] = [[] for _ in range(most)]
    known: list[set[Path]] = [set() for _ in range(most)]
    work = [0] * most
    for place, files in enumerate(programs):
        begun = range(min(most, sum(map(bool, groups)) + 1))  # and one more
        new = [sum(len(file.text) for file in files if file.path not in known[each]) for each in begun]
        chosen = min(begun, key=lambda each: work[each] + 2 * new[each])
        groups[chosen].append(place)
        known[chosen].update(file.path for file in files)
        work[chosen] += new[chosen]
    return [group for group in groups if group]


_stop: list[Any] = []  # in a worker: what the parent sets when nobody waits for values any more


def _listen_to(stop: Any) -> None:
    _stop.append(stop)


def _values(function: Callable[[Item], Value], items: Sequence[Item]) -> list[Value]:
    return [function(item) for item in items if not _stop[0].is_set()]


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
