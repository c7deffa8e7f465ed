"""Scripts that a conversion to plain PyTorch leaves without a process group: they import a module that it changes for
another one, or are such a module themselves, and run in one process, which has joined none."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ddpify_codemods.facts.header import main_guard, module_level_work
from ddpify_codemods.facts.reach import reached_code
from ddpify_codemods.facts.tree import parsed
from ddpify_codemods.imports import local_modules
from ddpify_codemods.reading import SourceError, read
from ddpify_codemods.rule import Finding
from ddpify_codemods.search_path import added_folders

from ddpify.files import shown
from ddpify.outcome import Outcome
from ddpify.programs import found_from

_ASKS = ("dist.get_rank()", "dist.get_world_size()", "dist.barrier()", "DistributedSampler(")
_NEEDS_GROUP = (*_ASKS, "dist.all_reduce(", "dist.broadcast", "dist.all_gather")
_NEEDS_WRAPPER = (".module(", ".module.")
_SUMS = ("reduction='sum'",)  # as ast.unparse writes it
_GROUP = "will find no process group there"
_UNWRAPPED = "may give it a model without a wrapper, which has no `module`"
_SUMMED = "would get a sum from there, where it gets a mean now"
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_LOOKED_AT = 300  # files beside those that are converted
_READ = 100  # files that one of them imports
_NAMED = 3
_JOIN = 'torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)'
_REMEDY = f"begin it with {_JOIN}, or give it a copy of this file"
_TRAINING_REMEDY = "convert both at once, by one command, or give it a copy of this file"
_COPY = "give it a copy of this file"
_OWN_REMEDY = f'begin its `if __name__ == "__main__":` with {_JOIN}, or give the other script a copy of this file'


def with_importers(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, with a warning for each changed module that needs processes and that other scripts start with.

    Args:
        outcomes: all programs of a run, converted to plain PyTorch or not.
    """
    entries = {outcome.entry.path for outcome in outcomes if outcome.codes and not outcome.failed}
    return [outcome if outcome.failed else _told(outcome, entries) for outcome in outcomes]


def _told(outcome: Outcome, entries: set[Path]) -> Outcome:
    shared = {source.path for source, code in outcome.codes.items() if any(each in code for each in _NEEDS_GROUP)}
    unwrapping = {source.path for source, code in outcome.codes.items() if _takes_out(code) > _takes_out(source.text)}
    summing = {source.path for source, code in outcome.codes.items() if _sums(code) > _sums(source.text)}
    if not shared | unwrapping | summing:
        return outcome
    texts = {source.path: source.text for source in outcome.sources}
    codes = texts | {source.path: code for source, code in outcome.codes.items()}
    joining = {path for path in shared if _joins_where_imported(codes[path])}
    users: dict[tuple[Path, str, str], list[str]] = {}
    results = dict(outcome.converted.results)
    for path, text in (*_scripts_within(outcome, entries), *_files_around(outcome, texts.keys() | entries)):
        root = outcome.entry.path.parent
        if path in shared and not _works(text) and not _asking(path, codes[path], codes, shared, root, itself=True):
            continue
        if path in shared:
            message = "this file is a script, too, and will find no process group where it is started by itself"
            finding = Finding("DDP601", "warning", 1, message, _OWN_REMEDY)
            results[path] = replace(results[path], findings=(*results[path].findings, finding))
            continue
        trains = ".backward(" in text
        asked = shared if _is_script(text) else {each for each in joining if each.stem in text}
        asking = _asking(path, text, codes, asked, root)
        for module in sorted(asking):
            remedy = _COPY if module in joining else _TRAINING_REMEDY if trains else _REMEDY
            users.setdefault((module, remedy, _GROUP), []).append(shown(path))
        for changed, needs, what in ((unwrapping, _NEEDS_WRAPPER, _UNWRAPPED), (summing, _SUMS, _SUMMED)):
            asked = changed - asking if _is_script(text) else set()
            for module in sorted(_asking(path, text, codes, asked, root, needs=needs)):
                users.setdefault((module, _TRAINING_REMEDY if trains else _COPY, what), []).append(shown(path))
    for (module, remedy, what), names in users.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        use = "imports" if len(names) == 1 else "import"
        message = f"{', '.join(names[:_NAMED])}{more} {use} this file too, and "
        joins = "would join a process group there" if len(names) == 1 else "would each join a process group there"
        message += joins if what == _GROUP and module in joining else what
        finding = Finding("DDP601", "warning", 1, message, remedy)
        results[module] = replace(results[module], findings=(*results[module].findings, finding))
    return replace(outcome, converted=replace(outcome.converted, results=results))


def _takes_out(code: str) -> int:
    """How often a file takes a model out of its wrapper: `model.module(x)`."""
    return sum(isinstance(each, ast.Attribute) and each.attr == "module" for each in ast.walk(parsed(code)))


def _sums(code: str) -> int:
    """How often a file makes a loss that sums: `reduction="sum"`."""
    words = (each for each in ast.walk(parsed(code)) if isinstance(each, ast.keyword) and each.arg == "reduction")
    return sum(isinstance(each.value, ast.Constant) and each.value.value == "sum" for each in words)


def _joins_where_imported(code: str) -> bool:
    """Whether a file joins a process group while it is imported: in no function, and not under a guard."""
    tree = ast.parse(code)
    guard = main_guard(tree)
    outer = (each for each in tree.body if each is not guard and not isinstance(each, _DEFINITIONS))
    calls = (node for each in outer for node in ast.walk(each) if isinstance(node, ast.Call))
    return any(ast.unparse(each.func).endswith("init_process_group") for each in calls)


def _is_script(text: str) -> bool:
    """Whether a file is one to start, as a rule."""
    return "__main__" in text or "parse_args(" in text or _calls_at_once(text)


def _calls_at_once(text: str) -> bool:
    """Whether a file without a guard runs a model or loads samples while it is read: `loader = DataLoader(tests)`."""
    if not any(each in text for each in ("DataLoader(", ".eval()", "load_state_dict(", "no_grad(")):
        return False
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = {"DataLoader", "eval", "load_state_dict", "no_grad"}
    outer = (node for each in module_level_work(tree) for node in ast.walk(each) if isinstance(node, ast.Call))
    return any(ast.unparse(each.func).rpartition(".")[2] in names for each in outer)


def _asking(
    path: Path,
    text: str,
    codes: dict[Path, str],
    shared: set[Path],
    root: Path,
    itself: bool = False,
    needs: tuple[str, ...] = _NEEDS_GROUP,
) -> set[Path]:
    """Those of the shared modules in which a script may come to something that asks for a process group.

    Args: the script; the files of the program, as they will be; which of them ask for one somewhere; the folder that
    the program is started in; whether the script, as it will be, is one that is asked about, and the only one; the
    code that asks.
    """
    files = _imported(path, text, codes, root)
    shared = {path} if itself else shared & files.keys()
    if not shared:
        return set()
    guard = main_guard(parsed(text)) if itself else None
    if guard is not None:  # all of what is started counts as reached: here that is what stands below the guard
        files = {path: text, **files}
        path, text = path.with_name("__main__.py"), "\n".join(map(ast.unparse, guard.body))
    try:
        _, scripts = read({path: text, **files})
    except SourceError:
        return shared
    code = reached_code(scripts)
    if len(files) > _READ or code is None:
        return shared
    asks = [node for node in code if any(each in ast.unparse(node) for each in needs)]
    return {each.path for each in scripts if each.path in shared and any(node in each.parents for node in asks)}


def _imported(path: Path, text: str, codes: dict[Path, str], root: Path) -> dict[Path, str]:
    """The texts of what a script imports, directly or not, itself left out; not many more than are looked at."""
    found: dict[Path, str] = {}
    waiting = [(path, text)]
    roots = dict.fromkeys((*found_from(path, added_folders(path, text, Path.cwd())), root))
    while waiting and len(found) <= _READ:
        at, code = waiting.pop()
        for each in (each for folder in roots for each in local_modules(at, code, folder, at == path)):
            module = each.resolve()
            if module not in found and module != path:
                found[module] = codes[module] if module in codes else _text(module)
                waiting.append((module, found[module]))
    return found


def _text(path: Path) -> str:
    """The text of a file; "" for one that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _scripts_within(outcome: Outcome, converted: set[Path]) -> Iterator[tuple[Path, str]]:
    """The files of a program, but its entry, that can be started themselves."""
    for source in outcome.sources[1:]:
        may_be = "__main__" in source.text and source.path not in converted
        if may_be and main_guard(parsed(source.text)) is not None:
            yield source.path, source.text


def _works(text: str) -> bool:
    """Whether a file trains or evaluates."""
    return any(each in text for each in (".backward(", "DataLoader("))


def _files_around(outcome: Outcome, known: set[Path]) -> Iterator[tuple[Path, str]]:
    """The files in the folder of a program's entry, or of a file that it changes above it, and in those within these,
    that are none of its own, and are not converted either."""
    entry = outcome.entry.path.parent
    changed = [each.path.parent for each in outcome.codes]
    folders = dict.fromkeys((entry, *(each for each in changed if each in entry.parents)))
    around = dict.fromkeys(path for each in folders for part in ("*.py", "*/*.py") for path in sorted(each.glob(part)))
    for path in islice((each for each in around if each.resolve() not in known), _LOOKED_AT):
        yield path.resolve(), _text(path)
