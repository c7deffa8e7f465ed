"""Out of the plain style: the script for one device that a plain conversion was made of.

Two kinds of rules take it back. What asks for the rank or the number of processes is what it is for one process, which
is sure by itself. What the loaders and the wrapper of the model stood for is not: so the outcome is converted again,
and each line that was taken out has to come back. What does not is refused.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeAlias

from ..facts import plain_code
from ..facts.backends import answered
from ..facts.called_modules import last_name
from ..facts.script import Script
from ..found import Found, ask, is_refused, rewritten, untouched
from ..layout import CALLS, joined
from ..options import ConversionOptions
from ..reading import read
from ..result import Result, original_lines
from ..rule import Finding
from ..targets import Target, of_backend
from .results import without_idle_imports
from .to_plain import with_plain_rules

Problems: TypeAlias = Mapping[Path, Sequence[Finding]]
_SURE = ("DDP701", "DDP702", "DDP705")
_ASKED_ALONE = {f"{plain_code.DIST}.{name}" for name in ("is_available", "is_initialized")}
_REMEDY = "take it out first, or go back with version control"


def source_of(scripts: Sequence[Script]) -> Target | None:
    """The target of a program in the plain style, by its process group; None for any other program."""
    if not plain_code.is_plain(scripts):
        return None
    calls = [call for call in scripts[0].find(ast.Call) if plain_code.is_call(scripts[0], call, "init_process_group")]
    named = [node.value for node in ast.walk(calls[0]) if isinstance(node, ast.Constant)]
    found = next((of_backend(str(value)) for value in named if of_backend(str(value))), None)
    return found if found is not None and found.retargets == "backend" else None


def options_of(scripts: Sequence[Script]) -> dict[str, Any]:
    """The further arguments of `convert` with which a program was converted, as far as it shows them."""
    nodes = [node for script in scripts for node in script.nodes]
    drawn = [script for script in scripts if any(plain_code.draws_part(script, node) for node in script.nodes)]
    divided = any(isinstance(getattr(node, "op", None), ast.FloorDiv) for script in drawn for node in script.nodes)
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    called = {script.qualified(each.func) for script in scripts for each in script.find(ast.Call)}
    return {
        "sync_batchnorm": "convert_sync_batchnorm" in names,
        "per_process": bool(drawn) and not divided,
        "optimizer_sharding": plain_code.SHARDING in called,
        "fully_sharded": plain_code.FULLY_SHARD in called,
        "entry": "spawn" if any(map(plain_code.starts_torchrun, scripts[0].nodes)) else "torchrun",
    }


def to_one_device(
    program: Mapping[Path, str],
    scripts: Sequence[Script],
    target: Target,
    options: ConversionOptions,
) -> tuple[dict[Path, Result], dict[Path, Result]]:
    """Take a program in the plain style back to one device.

    Args: its texts, its scripts, the target that it is converted for, and the options of that conversion.
    Returns a result per file, and what a conversion makes of these; where it is refused, no conversion.
    """
    from ..rules import in_folders

    target = replace(target, shards_optimizers=options.optimizer_sharding)
    target = target.starting_itself() if options.entry == "spawn" else target
    found = [ask(script, target, in_folders("from_plain"), False) for script in scripts]
    if any(map(is_refused, found)):
        return untouched(found), {}
    texts = {each.script.path: _code(each) for each in found}
    _, alone = read(texts, options.roots)
    alone = [*map(answered, alone)]  # it has been told its device
    problems = _left(program, scripts, alone)
    if not problems:
        again = with_plain_rules(texts, alone, target, options)
        problems = _not_converted(program, texts, again)
    if not problems:
        sure = tuple(rule for rule in in_folders("from_plain") if rule.id in _SURE)
        _, written = read({path: result.code for path, result in again.items()}, options.roots)
        changed = [there.text != again.text for there, again in zip(scripts, written, strict=True)]
        compared = [[*compress(files, changed)] for files in (scripts, written)]
        before, after = ([rewritten(ask(each, target, sure, False)) for each in files] for files in compared)
        problems = _lost(compared[0], before, after, texts)
    if problems:
        refused = (replace(each, findings=(*each.findings, *problems.get(each.script.path, ()))) for each in found)
        return untouched([*refused]), {}
    back = {each.script.path: Result(texts[each.script.path], each.changes, each.findings) for each in found}
    return back, again


def _code(found: Found) -> str:
    """The text of a file that has been taken back."""
    script = found.script
    code = without_idle_imports(script, rewritten(found), kept=("torch",))
    classes = (word.value for word in script.find(ast.keyword) if word.arg == "optimizer_class")
    return joined(script.text, code, {*CALLS, *(ast.unparse(each).rpartition(".")[2] for each in classes)})


def _left(program: Mapping[Path, str], before: Sequence[Script], scripts: Sequence[Script]) -> Problems:
    """Where files still speak of the process group, or import what a file has no more."""
    problems: dict[Path, list[Finding]] = {}
    written = (plain_code.helpers, plain_code.evaluators, plain_code.padded_loaders, plain_code.sampler_wrappers)
    gone = {name for script in before for known in written for name in known(script)}
    for script in scripts:
        lines = original_lines(program[script.path], script.text)
        for statement in script.find(ast.ImportFrom):
            for alias in statement.names:
                if alias.name in gone:
                    message = f"{alias.name} is one of the functions that go"
                    finding = Finding("DDP701", "refused", lines(statement.lineno), message, _REMEDY)
                    problems.setdefault(script.path, []).append(finding)
        for node in script.nodes:
            if not isinstance(node, ast.expr) or isinstance(script.parents[node], ast.Attribute):
                continue
            name = script.qualified(node)
            speaks = name.startswith(f"{plain_code.DIST}.") and name not in _ASKED_ALONE
            if speaks or plain_code.asks_launcher(script, node):
                message = f"{ast.unparse(node)} is used in a way of its own here"
                finding = Finding("DDP701", "refused", lines(node.lineno), message, _REMEDY)
                problems.setdefault(script.path, []).append(finding)
    return problems


def _not_converted(program: Mapping[Path, str], texts: Mapping[Path, str], again: Mapping[Path, Result]) -> Problems:
    """Why the outcome cannot be converted again."""
    problems: dict[Path, list[Finding]] = {}
    for path, result in again.items():
        lines = original_lines(program[path], texts[path])
        for each in result.findings:
            if each.severity == "refused":
                problems.setdefault(path, []).append(replace(each, line=lines(each.line)))
    return problems


def by_hand(
    scripts: Sequence[Script], back: Mapping[Path, Result], again: Mapping[Path, Result]
) -> dict[Path, list[Finding]]:
    """What a person has written into a program in the plain style that a conversion would write over.

    Args: its scripts, and what `to_one_device` returns.
    """
    texts = {path: result.code for path, result in back.items()}
    there, written = [each.text for each in scripts], [each.code for each in again.values()]
    problems = _lost(scripts, there, written, texts, whole=True)
    remedy = "convert what is new by hand, or go back to one device and convert again"
    message = "this file is not brought up to date: no conversion writes this line"
    return {
        path: [replace(each, severity="note", message=message, remedy=remedy) for each in lost[:1]]
        for path, lost in problems.items()
    }


def _lost(
    scripts: Sequence[Script],
    before: Sequence[str],
    after: Sequence[str],
    texts: Mapping[Path, str],
    whole: bool = False,
) -> dict[Path, list[Finding]]:
    """The lines that were taken out, and that a conversion of the outcome does not put in again.

    Args: the scripts; what is compared of each, and of its conversion; the outcome. whole: whether the arguments of
    wrappers count, too.
    """
    problems: dict[Path, list[Finding]] = {}
    for script, there, again in zip(scripts, before, after, strict=True):
        if there == again:
            continue
        lines = original_lines(script.text, there)
        missing = Counter(line for line, _ in _lines(there, whole))
        missing -= Counter(line for line, _ in _lines(again, whole))
        missing -= Counter(line for line, _ in _lines(texts[script.path], whole))
        for line, number in _lines(there, whole):
            if missing[line] > 0:
                missing[line] -= 1
                message = f"a conversion of what this stands for would not write it: {line.strip()}"
                finding = Finding("DDP704", "refused", lines(number), message, _REMEDY)
                problems.setdefault(script.path, []).append(finding)
    return problems


def _lines(text: str, whole: bool) -> Iterator[tuple[str, int]]:
    """The statements of a file, of blocks the first line alone, and their line numbers; imports left out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        wraps = isinstance(node, ast.Call) and last_name(node.func).endswith("DistributedDataParallel")
        if wraps and not whole:
            node.keywords = []  # type: ignore[attr-defined]  # how it is wrapped is the author's choice
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            yield "\n".join(ast.unparse(_begin(node)).split("\n")[:2]), node.lineno


def _begin(node: ast.AST) -> ast.AST:
    """A statement with no more of its block than the first line of that."""
    begin = copy(node)
    for part in ("body", "cases"):
        if isinstance(block := getattr(node, part, None), list):
            setattr(begin, part, [_begin(each) for each in block[:1]])
    for part in ("orelse", "handlers", "finalbody"):
        if isinstance(getattr(node, part, None), list):
            setattr(begin, part, [])
    return begin
