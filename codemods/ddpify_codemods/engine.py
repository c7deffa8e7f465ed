"""Convert a program: parse its files, ask every rule, refuse or rewrite, then distrust the outcome."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .facts import distribution
from .facts.script import Script
from .facts.trail import lost_trail
from .found import (
    Found,
    ask,
    ask_program,
    idle,
    is_refused,
    line_of,
    raise_if_unstable,
    refused_at,
    rewritten,
    trains,
    untouched,
)
from .layout import CALLS, joined, laid_out
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
from .plain_words import HOROVOD, TORCH
from .reading import SourceError, parse, read
from .result import ConversionBug, Result, in_turn, original_lines, unchanged
from .rule import Edit, Finding, Insert, Replace, Rule
from .runtime_names import RUNTIME
from .targets import NATIVE_REDUCTION, TARGETS, Target
from .view import View


def convert(
    program: Mapping[Path, str],
    target: str = "",
    modernize: bool = False,
    xla_reduce: str = "ddp",
    roots: Sequence[Path] = (),
    batch_norm: str = "",
    style: str = "",
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
    "batch" or "local", or "" for as it is, "batch" where nothing is converted yet; the style, "exact" or "plain",
    or "" for as it is, "exact" at first; of the plain style, whether BatchNorm is synchronized; whether the batch size
    is that of each process; a backend of the target, or "" for as it is, the usual one where nothing is converted; who
    starts the processes, "torchrun" (or another launcher) or "spawn", the script itself, or "" for as it is, "torchrun"
    at first; whether each process keeps a part of the optimizers' state (what is converted so stays so); whether
    each keeps a part of the model (fully_shard); the folder of checkpoints that a run goes on from, or
    "" for none.
    Returns a result per file; a refusal in one file leaves all of them as they are.
    Raises SourceError for a file that does not parse, ConversionBug when the outcome does not hold.
    """
    reason = _nothing_in_text(program)
    if reason:
        return unchanged(program, reason)
    views, scripts = read(program, tuple(roots))
    source = target_of(views.values())
    if not views and (target or style):
        options = {"modernize": modernize, "xla_reduce": xla_reduce, "batch_norm": batch_norm, "resume": resume}
        options |= {"optimizer_sharding": optimizer_sharding, "sync_batchnorm": sync_batchnorm, "backend": backend}
        options |= {"per_process": per_process, "fully_sharded": fully_sharded, "entry": entry, "roots": roots}
        moved = _out_of_plain(program, scripts, target, style, options)
        if moved:
            return moved
    if target == ONE_DEVICE:
        return _moved(program, {path: to_one_device(seen, source) for path, seen in views.items()}, None)
    name = target or (source.name if source else "")
    chosen = TARGETS[name].with_backend(backend or (source.backend if source and source.name == name else ""))
    shards_models = fully_sharded or any(seen.shards_models for seen in views.values())
    chosen = replace(chosen, shards_optimizers=optimizer_sharding, shards_models=shards_models)
    of_horovod = not views and chosen.words is not HOROVOD and distribution.speaks(scripts, HOROVOD)
    if of_horovod and distribution.kind(scripts) == "one process" and trains(scripts):
        from .to_torch import from_horovod

        return from_horovod(program, scripts, chosen, roots, backend)
    if not views and (chosen.words is not TORCH or chosen.retargets == "own") and distribution.kind(scripts) == "eager":
        from .to_backend import in_words_of_gpus

        first = in_words_of_gpus(program, scripts, roots)
        if any(map(is_refused, first.values())):
            return first
        if first:
            texts = {path: result.code for path, result in first.items()}
            return in_turn(program, first, convert(texts, chosen.name, style=style, roots=roots))
    if chosen.only_plain:
        return _plain(program, views, scripts, chosen, roots, sync_batchnorm, per_process, shards_models)
    if entry == "spawn" or (not entry and starts_itself(views.values())):
        chosen = chosen.starting_itself() if chosen.processes else chosen
    if chosen.words is not TORCH and distribution.speaks(scripts, chosen.words):
        return unchanged(program, f"distributed with {chosen.words.name} already")
    kind = "one process" if views else distribution.kind(scripts)
    if kind == "eager" and chosen.retargets != "own" and (entry == "torchrun" or not chosen.processes):
        from .launched import launched

        moved = launched(program, scripts, chosen, roots, backend)
        if moved:
            return moved
    if kind == "eager" and chosen.words is HOROVOD and trains(scripts):
        from .to_plain import in_other_words

        return in_other_words(program, scripts, chosen, "to_horovod")
    if kind == "eager" and chosen.retargets == "backend":
        from .to_backend import on_other_backend

        moved = on_other_backend(program, scripts, chosen, roots, backend)
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
        return _plain(program, views, scripts, chosen, roots, sync_batchnorm, per_process, shards_models)
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
    if shards_models:
        scripts = in_program(scripts)
    has_loop = trains(scripts) or kind == "torch_xla"
    rules = in_folders(*(FOLDERS[kind] if has_loop else {"always"} & {*FOLDERS[kind]}))
    if per_process and has_loop and kind == "one process":
        scripts = in_program(scripts, per_process=True)
        rules = (*rules, *in_folders("per_process"))
    found = ask_program(scripts, chosen, rules, modernize)
    if any(map(is_refused, found)):
        return untouched(found)
    if not has_loop:
        trail = lost_trail(scripts) if kind == "one process" else None
        if trail is None:
            return idle(found, "no training loop")
        distributed = [ask(script, chosen, (already_distributed.RULE,), modernize) for script in scripts]
        return untouched(distributed) if any(each.findings for each in distributed) else refused_at(found, trail)
    if kind != "one process":
        return _rewritten_as_torch(found, chosen, in_folders("modernize"))
    reason = "already converted" if scripts[0].path in views and not any(each.edits for each in found) else ""
    launch = chosen.launch if chosen.launch != TARGETS[name].launch else ""
    results = {
        each.script.path: Result(
            laid_out(each.script.text, rewritten(each), CALLS), each.changes, each.findings, reason, launch
        )
        for each in found
    }
    changed = {path: result.code for path, result in results.items()}
    if changed != dict(program):
        _, again = read(changed, tuple(roots))
        again = in_program(again, per_process=per_process) if per_process or resume or shards_models else again
        raise_if_unstable(ask(script, chosen, rules, modernize) for script in again)
    return results


def _out_of_plain(
    program: Mapping[Path, str], scripts: Sequence[Script], target: str, style: str, options: dict[str, Any]
) -> dict[Path, Result]:
    """Take a program in the plain style back to one device, and convert it anew; nothing for any other program."""
    from .from_plain import by_hand, options_of, source_of, to_one_device

    source = source_of(scripts)
    if source is None or (not style and target == source.name):
        return {}
    if style != "exact" and target and target != ONE_DEVICE and target != source.name:
        return _to_other_target(program, scripts, source, TARGETS[target], options)
    kept = {name: value for name, value in options_of(scripts).items() if value and not options[name]}
    starts = source.starting_itself() if {**options, **kept}["entry"] == "spawn" else source
    how = {name: options[name] or name in kept for name in ("sync_batchnorm", "per_process")}
    back, plain = to_one_device(program, scripts, starts, options["roots"], **how)
    if target == ONE_DEVICE or (style == "exact" and not plain):
        return back
    if style == "plain":
        told = by_hand(scripts, back, plain) if plain else {}
        if told:
            return {path: Result(text, findings=tuple(told.get(path, ()))) for path, text in program.items()}
        return _brought_up_to_date(program, plain)
    kept.pop("sync_batchnorm", None)
    texts = {path: result.code for path, result in back.items()}
    return in_turn(program, back, convert(texts, target if target else source.name, style=style, **{**options, **kept}))


def _to_other_target(
    program: Mapping[Path, str], scripts: Sequence[Script], source: Target, target: Target, options: dict[str, Any]
) -> dict[Path, Result]:
    """Convert for another target what a program in the plain style stands for; nothing for one that has to be moved as
    if it were written by hand: with lines of a person's own, or off the CPU, which it names."""
    from .from_plain import by_hand, options_of, to_one_device
    from .to_backend import in_words_of_gpus

    on_cpu = next(each for each in TARGETS.values() if not each.is_accelerator)
    of_host = not source.is_accelerator
    if source.renames or (of_host and target.is_accelerator):
        if of_host and not source.plain_environment:
            return {}  # the CPU is its own word there, which no conversion has put in
        first = in_words_of_gpus(program, scripts, options["roots"])
        if of_host:
            first = _to_other_target(program, scripts, source, on_cpu, {**options, "backend": ""})
        if not first or any(map(is_refused, first.values())):
            return {}
        texts = {path: result.code for path, result in first.items()}
        return in_turn(program, first, convert(texts, target.name, style="plain", **options))
    kept = {name: value for name, value in options_of(scripts).items() if value and not options[name]}
    if not target.processes:
        kept.pop("entry", None)
    kept |= {"optimizer_sharding": True} if source.shards_optimizers else {}
    needed = {"sync_batchnorm": "sync-batchnorm", "optimizer_sharding": "optimizer-sharding"}
    if any(option in kept and word not in target.options for option, word in needed.items()):
        return {}
    starts = source.starting_itself() if kept.get("entry") == "spawn" else source
    how = {name: name in kept for name in ("sync_batchnorm", "per_process")}
    back, plain = to_one_device(program, scripts, starts, options["roots"], **how)
    if not plain or by_hand(scripts, back, plain):
        return {}
    texts = {path: result.code for path, result in back.items()}
    moved = convert(texts, target.name, style="plain", **{**options, **kept})
    return {} if any(map(is_refused, moved.values())) else in_turn(program, back, moved)


def _brought_up_to_date(program: Mapping[Path, str], plain: Mapping[Path, Result]) -> dict[Path, Result]:
    """The results of converting what a program stands for, where files that say the same stay byte for byte."""
    results = {}
    for path, result in plain.items():
        lines = original_lines(program[path], result.code)
        findings = tuple(replace(each, line=lines(each.line)) for each in result.findings)
        if _without_order(parse(path, result.code)) == _without_order(parse(path, program[path])):
            results[path] = Result(program[path], findings=findings, reason="already converted")
        else:
            results[path] = replace(result, findings=findings)
    return results


def _without_order(tree: ast.Module) -> tuple[list[str], list[str]]:
    """What a file says, whatever the order of its imports."""
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    others = [ast.dump(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(imports), others


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
    from .to_plain import in_other_words, to_plain

    if views and fully_sharded and "fully-sharded" not in target.options:
        message, remedy = f"fully_shard is not for the {target.name} target", "ddpify --target none goes back first"
        finding = Finding("DDP128", "refused", 1, message, remedy)
        return {
            path: Result(text, findings=(finding,) * (path == next(iter(program)))) for path, text in program.items()
        }
    kind = distribution.kind(scripts)
    if kind != "one process" and target.retargets == "own":
        return convert(program, target.name, roots=roots)
    if distribution.speaks(scripts, target.words):
        return unchanged(program, f"distributed with {target.words.name} already")
    if kind != "one process" and not (target.only_plain or target.words.averaging):
        return unchanged(program, "distributed with torch already")
    if kind == "eager" and target.only_plain:
        return in_other_words(program, scripts, target, "ignite")
    if views:
        moves = {path: to_one_device(seen, target_of(views.values())) for path, seen in views.items()}
        entry = "spawn" if target.starts_itself else ""
        plain = partial(convert, style="plain", sync_batchnorm=sync_batchnorm, per_process=per_process, entry=entry)
        plain = partial(plain, fully_sharded=fully_sharded)
        return _moved(program, moves, partial(plain, target=target.name, roots=roots, backend=target.backend))
    results = to_plain(program, scripts, target, roots, sync_batchnorm, per_process, fully_sharded)
    if not target.plain_by_way_of or all(result.code == program[path] for path, result in results.items()):
        return results
    texts = {path: result.code for path, result in results.items()}
    return in_turn(program, results, convert(texts, target.name, roots=roots))


def converted_for(program: Mapping[Path, str]) -> str:
    """The target that a program is converted for; "" where it is not, or where its files cannot be read.

    Args:
        program: its texts by path, the file that gets started first.
    """
    exact = any("ddpify_runtime" in text for text in program.values())
    if not exact and "sys.stdout = open(os.devnull" not in next(iter(program.values()), ""):
        return ""
    try:
        views, scripts = read(program)
    except SourceError:
        return ""
    if not exact:
        from .from_plain import source_of
    source = target_of(views.values()) if exact else source_of(scripts)
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
    nothing = Found(Script(Path(), "", ast.Module([], []), False, frozenset()))
    found = dict.fromkeys(program, nothing)
    for path, move in moves.items():
        original = parse(path, program[path])
        found[path] = Found(Script(path, program[path], original, False, frozenset()), move.edits, move.findings)
    texts = {path: rewritten(found[path]) if path in moves else text for path, text in program.items()}
    updated = update(texts) if update else {path: Result(text) for path, text in texts.items()}
    results = {}
    for path, result in updated.items():
        lines = original_lines(program[path], texts[path])
        findings = (*found[path].findings, *(replace(each, line=lines(each.line)) for each in result.findings))
        refused = any(each.severity == "refused" for other in updated.values() for each in other.findings)
        if refused:
            results[path] = Result(program[path], findings=findings)
            continue
        changes = (*found[path].changes, *(replace(each, line=lines(each.line)) for each in result.changes))
        code = result.code
        if path in moves:
            code = _without_unused(path, code) if update else joined(program[path], code, CALLS)
        reason = "" if code != program[path] else "not converted"
        ordered = tuple(sorted(changes, key=lambda change: change.line))
        results[path] = Result(code, ordered, tuple(sorted(findings, key=line_of)), reason, result.launch)
    return results


def _without_unused(path: Path, code: str) -> str:
    tree = parse(path, code)
    return rewritten(Found(Script(path, code, tree, False, frozenset()), tuple(unused_names(tree))))


def _rewritten_as_torch(found: Sequence[Found], target: Target, modernized: tuple[Rule, ...]) -> dict[Path, Result]:
    """The results for a program that is distributed by hand: XLA code without ddpify_runtime."""
    found = [replace(each, edits=tuple((rule, _without_runtime(edit)) for rule, edit in each.edits)) for each in found]
    reason = "" if any(each.edits for each in found) else "XLA code already"
    launch = "python {module}{script}"
    results = {each.script.path: Result(rewritten(each), each.changes, each.findings, reason, launch) for each in found}
    _, again = read({path: result.code for path, result in results.items()})
    stable = bool(reason) or not any(ask(each, target, modernized, True).edits for each in again)
    if distribution.kind(again) != "torch_xla" or not stable:
        raise ConversionBug(f"{again[0].path}: a second conversion would change it again")
    return results


def _without_runtime(edit: Edit) -> Edit:
    """An edit of a rule that is shared with scripts of one process, for a script that does not import the runtime."""
    if not isinstance(edit, (Insert, Replace)):
        return edit
    return replace(edit, modules=tuple(line for line in edit.modules if RUNTIME not in line))


def _nothing_in_text(program: Mapping[Path, str]) -> str:
    if not any(text.strip() for text in program.values()):
        return "empty file"
    imports_in_the_run = "import_module(" in next(iter(program.values()))
    return "" if imports_in_the_run or any("torch" in text for text in program.values()) else "no torch in it"
