"""Convert a program: see what it is, and choose the way from there to what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .facts import distribution, plain_code
from .moves.by_hand import in_words_of_torch, moved_by_hand
from .moves.converted_file import starts_itself, target_of, to_one_device, to_target
from .moves.from_exact import moved
from .moves.in_other_words import refused_there, written_for
from .moves.to_exact import to_exact
from .moves.to_xla import to_xla
from .options import LOCAL_BATCH_NORM, ONE_DEVICE, ConversionOptions
from .plain_words import TORCH
from .reading import SourceError, read
from .result import Result, raise_unless_compiled, refusal, unchanged
from .targets import NATIVE_REDUCTION, TARGETS, Target


def convert(
    program: Mapping[Path, str], target: str = "", *, roots: Sequence[Path] = (), **options: Any
) -> dict[Path, Result]:
    """Convert the files of one program.

    Args: their texts (newlines as in the file, no byte order mark), the script that gets started first, then the local
    modules that it imports; the name of a target, ONE_DEVICE to go back, or "" for the one that they are converted for;
    the folders where absolute imports are found; the other options by their names (`ConversionOptions`).
    Returns a result per file; a refusal in one file leaves all of them as they are.
    Raises SourceError for a file that does not parse, ConversionBug when the outcome does not hold.
    """
    results = _convert(program, ConversionOptions(target, roots=tuple(roots), **options))
    for path, result in results.items():
        if result.code != program[path]:
            raise_unless_compiled(path, program[path], result.code)
    return results


def _convert(program: Mapping[Path, str], options: ConversionOptions) -> dict[Path, Result]:
    reason = _nothing_in_text(program)
    if reason:
        return unchanged(program, reason)
    views, scripts = read(program, options.roots)
    source = target_of(views.values())
    if not views and (options.target or options.style) and plain_code.is_plain(scripts):
        from .moves.from_plain import from_plain

        again = from_plain(program, scripts, options, _convert)
        if again:
            return again
    if not views and (refused := refused_there(program, scripts, options)):
        return refused
    if options.target == ONE_DEVICE:
        return moved(program, {path: to_one_device(seen, source) for path, seen in views.items()}, None)
    shards_models = any(seen.shards_models for seen in views.values())
    if shards_models and options.fully_sharded is False and options.style != "plain":
        message = "each process keeps a part of the model here, not all of it as with --strategy ddp"
        return refusal(program, "DDP128", message, "ddpify --target none first, then convert again")
    options = replace(options, fully_sharded=shards_models if options.fully_sharded is None else options.fully_sharded)
    target = _chosen(options, source)
    if not views:
        first = in_words_of_torch(program, scripts, target, options, _convert)
        if first:
            return first
    if target.only_plain:
        from .moves.to_plain import to_plain  # it follows the values of a program, which nothing else need import

        return to_plain(program, views, scripts, target, options, _convert)
    if options.entry == "spawn" or (not options.entry and starts_itself(views.values())):
        target = target.starting_itself() if target.processes else target
    if target.words is not TORCH and distribution.speaks(scripts, target.words):
        return unchanged(program, f"distributed with {target.words.name} already")
    kind = "one process" if views else distribution.kind(scripts)
    if kind == "eager":
        first = moved_by_hand(program, scripts, target, options)
        if first:
            return first
    if target.retargets != "own":
        kind = "one process"
    target = _with_arguments(target, options, kind)
    if options.style == "plain":
        from .moves.to_plain import to_plain

        return to_plain(program, views, scripts, target, options, _convert)
    whole = options.per_process is False
    asked = options.xla_reduce == "native" or options.batch_norm or options.entry or whole
    if source and (source.backend != target.backend or asked):
        named = bool(options.batch_norm)
        moves = {path: to_target(seen, source, target, named, whole) for path, seen in views.items()}
        if any(move.edits for move in moves.values()):
            update = replace(options, target=target.name, backend=target.backend, style="")
            further = {"per_process": options.per_process or None, "fully_sharded": options.fully_sharded or None}
            update = replace(update, sync_batchnorm=False, for_writing=True, **further)  # type: ignore[arg-type]
            return moved(program, moves, lambda texts: _convert(texts, update))
    if kind != "one process":
        return to_xla(program, scripts, target, kind, options)
    return to_exact(program, views, scripts, target, options)


def _chosen(options: ConversionOptions, source: Target | None) -> Target:
    """The target that is asked for, or that the program is converted for, and what is asked of it."""
    name = options.target or (source.name if source else "")
    target = TARGETS[name].with_backend(options.backend or (source.backend if source and source.name == name else ""))
    return replace(target, shards_optimizers=options.optimizer_sharding, shards_models=bool(options.fully_sharded))


def _with_arguments(target: Target, options: ConversionOptions, kind: distribution.Kind) -> Target:
    """A target whose models are wrapped with the arguments that the options stand for."""
    if options.xla_reduce == "native":
        target = replace(target, wrapper_arguments=NATIVE_REDUCTION)
    if options.batch_norm == "local" and kind == "one process":
        arguments = ", ".join(filter(None, (target.wrapper_arguments, LOCAL_BATCH_NORM)))
        target = replace(target, wrapper_arguments=arguments)
    return target


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
        from .moves.plain_to_one_device import source_of
    source = target_of(views.values()) if exact else source_of(scripts) or written_for(scripts)
    return source.name if source else ""


def _nothing_in_text(program: Mapping[Path, str]) -> str:
    if not any(text.strip() for text in program.values()):
        return "empty file"
    imports_in_the_run = "import_module(" in next(iter(program.values()))
    return "" if imports_in_the_run or any("torch" in text for text in program.values()) else "no torch in it"
