"""Convert a program: parse its files, ask every rule, refuse or rewrite, then distrust the outcome."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from .facts import distribution
from .facts.header import main_guard
from .facts.ignores import ignored
from .facts.optimizers import optimizers
from .facts.reach import reaches_backward
from .facts.script import KEPT, Script
from .facts.trail import Lost, computes_gradients, lost_trail
from .layout import laid_out
from .move import (
    LOCAL_BATCH_NORM,
    ONE_DEVICE,
    Move,
    starts_itself,
    target_of,
    to_one_device,
    to_target,
    unused_names,
)
from .plain_words import TORCH
from .reading import SourceError, parse, read
from .rule import Change, Delete, DropImport, Edit, Finding, Insert, Replace, Rule, place_of
from .runtime_names import RUNTIME
from .targets import NATIVE_REDUCTION, TARGETS, Target
from .view import View, missing


@dataclass(frozen=True)
class Result:
    """What became of one file.

    code: its text afterwards. changes: what was done. findings: what a person must know.
    reason: why there was nothing to do ("" otherwise). launch: how to start it, if not as the target's other scripts.
    """

    code: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    launch: str = ""


class ConversionBug(Exception):
    """The rewritten text is not what it must be: a bug of ddpify. Nothing was written."""


def convert(
    program: Mapping[Path, str],
    target: str = "",
    modernize: bool = False,
    xla_reduce: str = "ddp",
    roots: Sequence[Path] = (),
    batch_norm: str = "",
    style: str = "exact",
    sync_batchnorm: bool = False,
    per_process: bool = False,
    backend: str = "",
    entry: str = "",
    optimizer_sharding: bool = False,
    fully_sharded: bool = False,
    resume: str = "",
) -> dict[Path, Result]:
    """Convert the files of one program.

    Args: their texts (newlines as in the file, no byte order mark), the script that gets started first, then the local
    modules that it imports; the name of a target, ONE_DEVICE to go back, or "" for the one that they are converted for;
    whether old spellings of XLA code are rewritten too; how gradients are reduced on XLA, "ddp" or "native"; the
    folders where absolute imports are found (none: what they name is not looked for); whose statistics BatchNorm takes,
    "batch" or "local", or "" for as it is, "batch" where nothing is converted yet; the style, "exact" or "plain"; of
    the plain style, whether BatchNorm is synchronized; whether the batch size is that of each process; a backend of the
    target, or "" for as it is, the usual one where nothing is converted yet; who starts the processes, "torchrun" (or
    another launcher) or "spawn", the script itself, or "" for as it is, "torchrun" at first; whether each process keeps
    a part of the optimizers' state (what is converted so stays so); of the plain style, whether each keeps a part of
    the model (fully_shard); the folder of checkpoints that a run goes on from, or "" for none.
    Returns a result per file; a refusal in one file leaves all of them as they are.
    Raises SourceError for a file that does not parse, ConversionBug when the outcome does not hold.
    """
    reason = _nothing_in_text(program)
    if reason:
        return _unchanged(program, reason)
    views, scripts = read(program, tuple(roots))
    source = target_of(views.values())
    if target == ONE_DEVICE:
        return _moved(program, {path: to_one_device(seen, source) for path, seen in views.items()}, None)
    name = target or (source.name if source else "")
    chosen = TARGETS[name].with_backend(backend or (source.backend if source and source.name == name else ""))
    chosen = replace(chosen, shards_optimizers=optimizer_sharding)
    if chosen.only_plain:
        return _plain(program, views, scripts, chosen, roots, sync_batchnorm, per_process, fully_sharded)
    if entry == "spawn" or (not entry and starts_itself(views.values())):
        chosen = chosen.starting_itself() if chosen.processes else chosen
    if chosen.words is not TORCH and distribution.speaks(scripts, chosen.words):
        return _unchanged(program, f"distributed with {chosen.words.name} already")
    kind = "one process" if views else distribution.kind(scripts)
    if kind == "eager" and chosen.retargets == "backend":
        moved = _on_other_backend(program, scripts, chosen, roots, backend)
        if moved:
            return moved
    kind = kind if chosen.retargets == "own" else "one process"
    if xla_reduce == "native":
        chosen = replace(chosen, wrapper_arguments=NATIVE_REDUCTION)
    if batch_norm == "local" and kind == "one process":
        chosen = replace(
            chosen, wrapper_arguments=", ".join(filter(None, (chosen.wrapper_arguments, LOCAL_BATCH_NORM)))
        )
    if style == "plain":
        return _plain(program, views, scripts, chosen, roots, sync_batchnorm, per_process, fully_sharded)
    if source and (source.backend != chosen.backend or xla_reduce == "native" or batch_norm or entry):
        moves = {path: to_target(seen, source, chosen, bool(batch_norm)) for path, seen in views.items()}
        if any(move.edits for move in moves.values()):
            update = partial(convert, target=chosen.name, modernize=modernize, xla_reduce=xla_reduce, roots=roots)
            update = partial(update, batch_norm=batch_norm, optimizer_sharding=optimizer_sharding, resume=resume)
            return _moved(program, moves, partial(update, backend=chosen.backend, entry=entry))
    from .rules import FOLDERS, in_folders  # here, so that a file without work costs no import of them
    from .rules.refuse import already_distributed
    from .styles import in_program

    if resume:
        if kind != "one process":
            return _refused_resume(program)
        chosen, scripts = replace(chosen, resume=resume), in_program(scripts)
    trains = _trains(scripts) or kind == "torch_xla"
    rules = in_folders(*(FOLDERS[kind] if trains else {"always"} & {*FOLDERS[kind]}))
    if per_process and trains and kind == "one process":
        scripts = in_program(scripts, per_process=True)
        rules = (*rules, *in_folders("per_process"))
    found = _of_program(scripts, chosen, rules, modernize)
    if any(map(_is_refused, found)):
        return _untouched(found)
    if not trains:
        trail = lost_trail(scripts) if kind == "one process" else None
        if trail is None:
            return _idle(found, "no training loop")
        distributed = [_found(script, chosen, (already_distributed.RULE,), modernize) for script in scripts]
        return _untouched(distributed) if any(each.findings for each in distributed) else _refused(found, trail)
    if kind != "one process":
        return _rewritten_as_torch(found, chosen, in_folders("modernize"))
    reason = "already converted" if scripts[0].path in views and not any(each.edits for each in found) else ""
    launch = chosen.launch if chosen.launch != TARGETS[name].launch else ""
    results = {each.script.path: Result(_rewrite(each), each.changes, each.findings, reason, launch) for each in found}
    changed = {path: result.code for path, result in results.items()}
    if changed != dict(program):
        _, again = read(changed, tuple(roots))
        again = in_program(again, per_process=per_process) if per_process or resume else again
        _raise_if_unstable(_found(script, chosen, rules, modernize) for script in again)
    return results


def _refused_resume(program: Mapping[Path, str]) -> dict[Path, Result]:
    """--resume is for what is converted in the exact style: it relies on every rank having the same state."""
    remedy = "convert the script for one device, or save and load in the script"
    finding = Finding("DDP126", "refused", 1, "--resume: this script is distributed by hand already", remedy)
    entry = next(iter(program))
    return {path: Result(text, findings=(finding,) * (path == entry)) for path, text in program.items()}


def _plain(
    program: Mapping[Path, str],
    views: Mapping[Path, View],
    scripts: Sequence[Script],
    target: Target,
    roots: Sequence[Path],
    sync_batchnorm: bool,
    per_process: bool,
    fully_sharded: bool,
) -> dict[Path, Result]:
    """Convert the files of one program to the plain style; for XLA by way of code for GPUs, which is then moved."""
    from .rules import in_folders
    from .styles import in_program, plain_rules

    kind = distribution.kind(scripts)
    if kind != "one process" and target.retargets == "own":
        return convert(program, target.name, roots=roots)
    if distribution.speaks(scripts, target.words):
        return _unchanged(program, f"distributed with {target.words.name} already")
    if kind != "one process" and not (target.only_plain or target.words.averaging):
        return _unchanged(program, "distributed with torch already")
    if kind == "eager" and target.only_plain:
        return _in_other_words(program, scripts, target)
    if views:
        moves = {path: to_one_device(seen, target_of(views.values())) for path, seen in views.items()}
        entry = "spawn" if target.starts_itself else ""
        plain = partial(convert, style="plain", sync_batchnorm=sync_batchnorm, per_process=per_process, entry=entry)
        return _moved(program, moves, partial(plain, target=target.name, roots=roots, backend=target.backend))
    trains = _trains(scripts)
    first = replace(target, modules=target.plain_modules)
    if target.plain_by_way_of:
        arguments = target.wrapper_arguments
        first = replace(TARGETS[target.plain_by_way_of], plain_wrapper_arguments=arguments)
    scripts = in_program(scripts, sync_batchnorm, per_process, fully_sharded)
    chosen = plain_rules() if trains else in_folders("always")
    found = [
        replace(each, findings=_of_style(target, each.findings))
        for each in _of_program(scripts, first, chosen, modernize=False)
    ]
    if any(map(_is_refused, found)):
        return _untouched(found)
    if not trains:
        trail = lost_trail(scripts)
        return _unchanged(program, "no training loop") if trail is None else _refused(found, trail)
    results = _laid_out(found, target.launch if target.starts_itself else "")
    texts = {path: result.code for path, result in results.items()}
    if any("ddpify_runtime" in text for text in texts.values()):
        raise ConversionBug(f"{scripts[0].path}: plain code imports ddpify_runtime")
    _, again = read(texts, tuple(roots))
    if not distribution.speaks(again, first.words):
        raise ConversionBug(f"{scripts[0].path}: the outcome joins no process group")
    by_hand = results
    if first.words is not TORCH:  # the rules for hand-written code know torch's words
        twin = replace(first, words=TORCH)
        by_hand = _laid_out([_found(script, twin, chosen, modernize=False) for script in scripts])
        _, again = read({path: result.code for path, result in by_hand.items()}, tuple(roots))
    warned = [_found(each, first, in_folders("lint"), modernize=False) for each in again]
    if any(_is_lint(finding) for each in warned for finding in each.findings):
        refused = _warned(program, by_hand, warned)
        return {path: replace(each, findings=_of_style(target, each.findings)) for path, each in refused.items()}
    if not target.plain_by_way_of:
        return results
    return _then(program, results, convert(texts, target.name, roots=roots))


def _in_other_words(program: Mapping[Path, str], scripts: Sequence[Script], target: Target) -> dict[Path, Result]:
    """Move a program that is distributed by hand with torch to the words of another engine."""
    from .rules import in_folders

    chosen = in_folders("always", "ignite")
    found = _of_program(scripts, target, chosen, modernize=False)
    if any(map(_is_refused, found)):
        return _untouched(found)
    results = {
        each.script.path: Result(_without_idle_imports(each.script, _rewrite(each)), each.changes, each.findings)
        for each in found
    }
    _, again = read({path: result.code for path, result in results.items()})
    if not distribution.speaks(again, target.words):
        raise ConversionBug(f"{scripts[0].path}: the outcome joins no processes")
    return results


def _laid_out(found: Iterable[_Found], launch: str = "") -> dict[Path, Result]:
    """The results of a conversion whose long calls of loaders and the like are put on several lines."""
    loaders = ("DataLoader", "auto_dataloader", "ZeroRedundancyOptimizer")
    return {
        each.script.path: Result(
            laid_out(each.script.text, _rewrite(each), loaders), each.changes, each.findings, launch=launch
        )
        for each in found
    }


def _of_style(target: Target, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What rules say, where a target has no exact style to turn to."""
    if not target.only_plain:
        return tuple(findings)
    exact = ("--style exact", "another target with --style exact")
    return tuple(replace(each, remedy=each.remedy.replace(*exact)) for each in findings)


def _on_other_backend(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, roots: Sequence[Path], backend: str
) -> dict[Path, Result]:
    """Move a program that is distributed by hand to a target's backend and devices; nothing for one that is there."""
    from .facts.backends import spoken, with_backend_of
    from .facts.launch import spawns
    from .rules import in_folders

    if not _trains(scripts):
        return {}
    target = target if backend else with_backend_of(scripts, target)
    source = spoken(scripts)
    if source is not None and not source.has_cuda_words and not target.is_accelerator:
        by_way_of = next(each for each in TARGETS.values() if each.has_cuda_words)
        first = _on_other_backend(program, scripts, by_way_of, roots, by_way_of.backend)
        if any(map(_is_refused, first.values())):
            return first
        texts = {path: result.code for path, result in first.items()}
        return _then(program, first, _on_other_backend(texts, read(texts, tuple(roots))[1], target, roots, backend))
    rules = in_folders("always", "lint", "backend", *(("onto_accelerator",) if source is None else ()))
    found = [_found(script, target, rules, False) for script in scripts]
    if not any(each.edits for each in found):
        return {}
    if any(map(_is_refused, found)):
        return _untouched(found)
    launch = "python {module}{script}" if any(map(spawns, scripts)) else target.launch
    results = {each.script.path: Result(_rewrite(each), each.changes, each.findings, launch=launch) for each in found}
    _, again = read({path: result.code for path, result in results.items()}, tuple(roots))
    still = in_folders("backend", *(("onto_accelerator",) if spoken(again) is None else ()))
    _raise_if_unstable(_found(script, target, still, False) for script in again)
    return results


def _is_lint(finding: Finding) -> bool:
    """Whether a rule for hand-written code warns; what it only notes, such as local BatchNorm, DDP611 says."""
    return finding.rule.startswith("DDP5") and finding.severity != "note"


def _warned(
    program: Mapping[Path, str], results: Mapping[Path, Result], warned: Sequence[_Found]
) -> dict[Path, Result]:
    """Refuse a conversion in which the rules for hand-written code find something."""
    refused = {}
    for each in warned:
        path = each.script.path
        lines = _original_lines(program[path], results[path].code)
        findings = [
            Finding("DDP610", "refused", lines(found.line), f"by hand, too: {found.message}", "use --style exact")
            for found in each.findings
            if _is_lint(found)
        ]
        refused[path] = Result(program[path], findings=(*results[path].findings, *findings))
    return refused


def _then(
    program: Mapping[Path, str], first: Mapping[Path, Result], second: Mapping[Path, Result]
) -> dict[Path, Result]:
    """The results of two conversions, one after the other."""
    results = {}
    refused = any(each.severity == "refused" for result in second.values() for each in result.findings)
    for path, result in second.items():
        lines = _original_lines(program[path], first[path].code)
        findings = (*first[path].findings, *(replace(each, line=lines(each.line)) for each in result.findings))
        if refused:
            results[path] = Result(program[path], findings=findings)
            continue
        changes = (*first[path].changes, *(replace(each, line=lines(each.line)) for each in result.changes))
        results[path] = Result(result.code, changes, tuple(sorted(findings, key=_line)), launch=result.launch)
    return results


def _untouched(found: Sequence[_Found]) -> dict[Path, Result]:
    return {each.script.path: Result(each.script.text, findings=each.findings) for each in found}


def _idle(found: Sequence[_Found], reason: str) -> dict[Path, Result]:
    return {each.script.path: Result(each.script.text, findings=each.findings, reason=reason) for each in found}


def _refused(found: Sequence[_Found], trail: Lost) -> dict[Path, Result]:
    finding = Finding(trail.rule, "refused", trail.line, trail.message, trail.remedy)
    return _untouched(
        [replace(each, findings=(*each.findings, finding)) if each.script is trail.script else each for each in found]
    )


def converted_for(program: Mapping[Path, str]) -> str:
    """The target that a program is converted for; "" where it is not, or where its files cannot be read."""
    if not any("ddpify_runtime" in text for text in program.values()):
        return ""
    try:
        views, _ = read(program)
    except SourceError:
        return ""
    source = target_of(views.values())
    return source.name if source else ""


def _moved(
    program: Mapping[Path, str],
    moves: Mapping[Path, Move],
    update: Callable[[dict[Path, str]], dict[Path, Result]] | None,
) -> dict[Path, Result]:
    """The results of moving converted files, and of updating them for the target that they were moved to."""
    refused = any(finding.severity == "refused" for move in moves.values() for finding in move.findings)
    if refused:
        return {
            path: Result(text, findings=moves[path].findings if path in moves else ()) for path, text in program.items()
        }
    nothing = _Found(Script(Path(), "", ast.Module([], []), False, frozenset()))
    found = dict.fromkeys(program, nothing)
    for path, move in moves.items():
        original = parse(path, program[path])
        found[path] = _Found(Script(path, program[path], original, False, frozenset()), move.edits, move.findings)
    texts = {path: _rewrite(found[path]) if path in moves else text for path, text in program.items()}
    updated = update(texts) if update else {path: Result(text) for path, text in texts.items()}
    results = {}
    for path, result in updated.items():
        lines = _original_lines(program[path], texts[path])
        findings = (*found[path].findings, *(replace(each, line=lines(each.line)) for each in result.findings))
        refused = any(each.severity == "refused" for other in updated.values() for each in other.findings)
        if refused:
            results[path] = Result(program[path], findings=findings)
            continue
        changes = (*found[path].changes, *(replace(each, line=lines(each.line)) for each in result.changes))
        code = _without_unused(path, result.code) if path in moves and update else result.code
        reason = "" if code != program[path] else "not converted"
        ordered = tuple(sorted(changes, key=lambda change: change.line))
        results[path] = Result(code, ordered, tuple(sorted(findings, key=_line)), reason, result.launch)
    return results


def _without_unused(path: Path, code: str) -> str:
    tree = parse(path, code)
    return _rewrite(_Found(Script(path, code, tree, False, frozenset()), tuple(unused_names(tree))))


def _without_idle_imports(before: Script, code: str) -> str:
    """The text of a file without the imports that it used, and uses no more."""
    tree = parse(before.path, code)
    used, still = ({node.id for node in ast.walk(each) if isinstance(node, ast.Name)} for each in (before.tree, tree))
    edits: list[tuple[str, Edit]] = []
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names]
        idle = [full for name, full in names if name in used - still]
        if len(idle) == len(names):
            edits.append(("", Delete(node, "")))
        else:
            edits += [("", DropImport(node, full, "")) for full in idle]
    return _rewrite(_Found(Script(before.path, code, tree, False, frozenset()), tuple(edits)))


def _original_lines(before: str, after: str) -> Callable[[int], int]:
    """What turns a line number of the moved text into one of the file as it is."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()

    def original(line: int) -> int:
        for _, first, last, start, end in blocks:
            if start <= line - 1 < end:
                return min(first + line - 1 - start, max(last - 1, first)) + 1
        return line

    return original


def _raise_if_unstable(found: Iterable[_Found]) -> None:
    """Distrust the outcome: its own conversion, for real, must have nothing to do."""
    for each in found:
        for rule, edit in each.edits:
            what = f"{rule} at line {_line(edit)}, {edit.message}"
            raise ConversionBug(f"{each.script.path}: a second conversion would change it again: {what}")


def _rewritten_as_torch(found: Sequence[_Found], target: Target, modernized: tuple[Rule, ...]) -> dict[Path, Result]:
    """The results for a program that is distributed by hand: XLA code without ddpify_runtime."""
    found = [replace(each, edits=tuple((rule, _without_runtime(edit)) for rule, edit in each.edits)) for each in found]
    reason = "" if any(each.edits for each in found) else "XLA code already"
    launch = "python {module}{script}"
    results = {each.script.path: Result(_rewrite(each), each.changes, each.findings, reason, launch) for each in found}
    _, again = read({path: result.code for path, result in results.items()})
    stable = bool(reason) or not any(_found(each, target, modernized, True).edits for each in again)
    if distribution.kind(again) != "torch_xla" or not stable:
        raise ConversionBug(f"{again[0].path}: a second conversion would change it again")
    return results


def _without_runtime(edit: Edit) -> Edit:
    """An edit of a rule that is shared with scripts of one process, for a script that does not import the runtime."""
    if not isinstance(edit, (Insert, Replace)):
        return edit
    return replace(edit, modules=tuple(line for line in edit.modules if RUNTIME not in line))


@dataclass(frozen=True, eq=False)
class _Found:
    """What the rules say about one script."""

    script: Script
    edits: tuple[tuple[str, Edit], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        changes = (Change(rule, _line(edit), edit.message) for rule, edit in self.edits if edit.message)
        return tuple(sorted(changes, key=lambda change: change.line))


@lru_cache(maxsize=KEPT)
def _found(script: Script, target: Target, rules: tuple[Rule, ...], modernize: bool) -> _Found:
    """What some rules say about a file, asked once for all programs that share it."""
    edits: list[tuple[str, Edit]] = []
    findings: list[Finding] = []
    switched_off = ignored(script.text)
    for rule in rules:
        for item in rule.check(script, target):
            if switched_off.get(_line(item), frozenset()) & {rule.id, ""}:
                if not isinstance(item, Finding) or not item.distributed:
                    continue
                item = replace(item, remedy="no ignore[…] switches this off; # ddpify: skip-file can")
            if isinstance(item, Finding):
                findings.append(item)
            elif modernize or rule.folder != "modernize":
                edits.append((rule.id, item))
            elif item.message:
                remedy = "rewrite it with --modernize"
                findings.append(Finding(rule.id, "warning", _line(item), item.message, remedy))
    if script.view is not None:
        edits = missing(script.view, edits)
    never = _never_started(script)
    edits = [(rule, edit) for rule, edit in edits if _line(edit) not in never]
    unseen = {edit.at.lineno for _, edit in edits if isinstance(edit, Delete)} | never
    told = (finding for finding in dict.fromkeys(findings) if finding.line not in unseen)
    return _Found(script, tuple(edits), tuple(sorted(told, key=_line)))


def _of_program(scripts: Sequence[Script], target: Target, rules: tuple[Rule, ...], modernize: bool) -> list[_Found]:
    """What some rules say about each file of a program, and about all of them."""
    found = [_found(script, target, rules, modernize) for script in scripts]
    told: list[tuple[Script, Finding]] = []
    for rule in rules:
        if rule.check_program is not None:
            edits = [edit for each in found for name, edit in each.edits if name == rule.id]
            told += rule.check_program(scripts, target, edits)
    told = [
        (script, each)
        for script, each in told
        if not ignored(script.text).get(each.line, frozenset()) & {each.rule, ""}
    ]
    if any(map(_is_refused, found)) or any(each.severity == "refused" for _, each in told):
        told = [(script, each) for script, each in told if each.severity == "refused"]  # the rest is of what is written
    return [
        replace(
            each,
            findings=tuple(
                sorted((*(finding for script, finding in told if script is each.script), *each.findings), key=_line)
            ),
        )
        for each in found
    ]


def _is_refused(found: _Found | Result) -> bool:
    return any(finding.severity == "refused" for finding in found.findings)


def _never_started(script: Script) -> set[int]:
    """The lines below `if __name__ == "__main__":` in a module that another file imports."""
    guard = None if script.is_entry else main_guard(script.tree)
    return set() if guard is None else set(range(guard.lineno, (guard.end_lineno or guard.lineno) + 1))


def _line(item: Edit | Finding) -> int:
    if isinstance(item, Finding):
        return item.line
    return place_of(item).lineno


def _nothing_in_text(program: Mapping[Path, str]) -> str:
    if not any(text.strip() for text in program.values()):
        return "empty file"
    imports_in_the_run = "import_module(" in next(iter(program.values()))
    return "" if imports_in_the_run or any("torch" in text for text in program.values()) else "no torch in it"


def _unchanged(program: Mapping[Path, str], reason: str) -> dict[Path, Result]:
    return {path: Result(text, reason=reason) for path, text in program.items()}


def _trains(scripts: Sequence[Script]) -> bool:
    """Whether the program comes to compute a gradient, and an optimizer is built anywhere in it."""
    backward = any(map(computes_gradients, scripts))
    return backward and any(optimizers(script) for script in scripts) and reaches_backward(scripts)


@lru_cache(maxsize=KEPT)
def _rewrite(found: _Found) -> str:
    if not found.edits:
        return found.script.text
    from libcst import ParserSyntaxError

    from .rewrite import EditNotPlaced, apply

    script = found.script
    try:
        tree = script.view.original if script.view else script.tree
        code = apply(script.text, tree, [edit for _, edit in found.edits])
    except ParserSyntaxError as error:
        raise SourceError(script.path, error.raw_line, error.message) from error
    except EditNotPlaced as error:
        raise ConversionBug(f"{script.path}: {error}") from error
    try:
        parse(script.path, code)
    except SourceError as error:
        raise ConversionBug(f"the converted {error}") from error
    return code
