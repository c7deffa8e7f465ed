"""Programs in the plain style, taken back to one device and converted anew: as before, for another target, or exact."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..facts.script import Script
from ..found import is_refused
from ..options import ONE_DEVICE, ConversionOptions, Convert
from ..reading import parse
from ..result import Result, in_turn, original_lines
from ..targets import TARGETS, Target
from .plain_to_one_device import by_hand, options_of, source_of, to_one_device
from .to_backend import in_words_of_gpus


def from_plain(
    program: Mapping[Path, str], scripts: Sequence[Script], options: ConversionOptions, convert: Convert
) -> dict[Path, Result]:
    """Take a program in the plain style back to one device, and convert it anew; nothing for any other program."""
    source = source_of(scripts)
    target, style = options.target, options.style
    if source is None or (not style and target == source.name):
        return {}
    if style != "exact" and target not in ("", ONE_DEVICE) and target != source.name:
        return _to_other_target(program, scripts, source, TARGETS[target], options, convert)
    kept = _kept(scripts, options)
    written = replace(options, **kept)
    starts = source.starting_itself() if written.entry == "spawn" else source
    back, plain = to_one_device(program, scripts, starts, written)
    if target == ONE_DEVICE or (style == "exact" and not plain):
        return back
    if style == "plain":
        notes = by_hand(scripts, back, plain) if plain else {}
        if notes:
            return {path: Result(text, findings=tuple(notes.get(path, ()))) for path, text in program.items()}
        return _brought_up_to_date(program, plain)
    kept.pop("sync_batchnorm", None)
    texts = {path: result.code for path, result in back.items()}
    return in_turn(program, back, convert(texts, replace(options, target=target or source.name, **kept)))


def _kept(scripts: Sequence[Script], options: ConversionOptions) -> dict[str, Any]:
    """The options with which a program was converted, where no others are asked for."""
    return {name: value for name, value in options_of(scripts).items() if value and not getattr(options, name)}


def _to_other_target(
    program: Mapping[Path, str],
    scripts: Sequence[Script],
    source: Target,
    target: Target,
    options: ConversionOptions,
    convert: Convert,
) -> dict[Path, Result]:
    """Convert for another target what a program in the plain style stands for; nothing for one that has to be moved as
    if it were written by hand: with lines of a person's own, or off the CPU, which it names."""
    on_cpu = next(each for each in TARGETS.values() if not each.is_accelerator)
    of_host = not source.is_accelerator
    if source.renames or (of_host and target.is_accelerator):
        if of_host and not source.plain_environment:
            return {}  # the CPU is its own word there, which no conversion has put in
        first = in_words_of_gpus(program, scripts, options.roots)
        if of_host:
            first = _to_other_target(program, scripts, source, on_cpu, replace(options, backend=""), convert)
        if not first or any(map(is_refused, first.values())):
            return {}
        texts = {path: result.code for path, result in first.items()}
        return in_turn(program, first, convert(texts, replace(options, target=target.name, style="plain")))
    kept = _kept(scripts, options)
    if not target.processes:
        kept.pop("entry", None)
    kept |= {"optimizer_sharding": True} if source.shards_optimizers else {}
    needed = ("sync_batchnorm", "optimizer_sharding", "fully_sharded")
    if any(option in kept and option.replace("_", "-") not in target.options for option in needed):
        return {}
    starts = source.starting_itself() if kept.get("entry") == "spawn" else source
    written = replace(options, sync_batchnorm="sync_batchnorm" in kept, per_process="per_process" in kept)
    written = replace(written, fully_sharded="fully_sharded" in kept)
    back, plain = to_one_device(program, scripts, starts, written)
    if not plain or by_hand(scripts, back, plain):
        return {}
    texts = {path: result.code for path, result in back.items()}
    moved = convert(texts, replace(options, target=target.name, style="plain", **kept))
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
