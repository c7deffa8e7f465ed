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
from ..result import Result, in_turn, refusal
from ..rule import Severity
from ..targets import TARGETS, Target
from .plain_to_one_device import by_hand, options_of, source_of, to_one_device
from .to_backend import in_words_of_gpus

_SHARDS = (
    ("fully_sharded", "DDP619", "fully_shard"),
    ("optimizer_sharding", "DDP618", "ZeroRedundancyOptimizer"),
)
_BOTH_WAYS = ("per_process", "fully_sharded")  # options that can be asked for with False, too


def from_plain(
    program: Mapping[Path, str], scripts: Sequence[Script], options: ConversionOptions, convert: Convert
) -> dict[Path, Result]:
    """Take a program in the plain style back to one device, and convert it anew; nothing for any other program."""
    source = source_of(scripts)
    if source is None:
        return {}
    target, style = options.target or source.name, options.style
    if style != "exact" and target != ONE_DEVICE and target != source.name:
        return _to_other_target(program, scripts, source, TARGETS[target], options, convert) or _started_there(
            program, scripts, TARGETS[target]
        )
    before = {**options_of(scripts), "backend": source.backend}
    chosen = _chosen(before, options)
    if chosen["fully_sharded"] and options.optimizer_sharding:
        message, remedy = "--strategy fsdp2 divides the optimizer's state as well", "leave out --optimizer-sharding"
        return refusal(program, "DDP619", message, remedy)
    is_another = target == source.name and chosen != before
    if not style and target == source.name and not is_another:
        return {}
    back, plain = to_one_device(program, scripts, source, replace(options, **before))
    if target == ONE_DEVICE or (not plain and (style == "exact" or is_another)):
        return back
    texts = {path: result.code for path, result in back.items()}
    further = replace(options, target=target, **chosen)
    if style == "exact":
        if target != source.name:
            further = replace(further, backend=options.backend)
        return _refused_there(program, chosen, TARGETS[target]) or in_turn(program, back, convert(texts, further))
    if notes := by_hand(scripts, back, plain) if plain else {}:
        severity: Severity = "refused" if is_another else "note"
        found = {path: tuple(replace(each, severity=severity) for each in lines) for path, lines in notes.items()}
        return {path: Result(text, findings=found.get(path, ())) for path, text in program.items()}
    plain = convert(texts, replace(further, style="plain")) if is_another else plain
    return _brought_up_to_date(program, texts, plain)


def _chosen(before: Mapping[str, Any], options: ConversionOptions) -> dict[str, Any]:
    """The options to convert a program with: those that are asked for, else those that it was converted with."""
    asked = {name: getattr(options, name) for name in before}
    said = {name: value for name, value in asked.items() if value or (value is False and name in _BOTH_WAYS)}
    if options.fully_sharded:
        said["optimizer_sharding"] = options.optimizer_sharding  # it divides the optimizer's state as well
    return {**before, **said}


def _refused_there(program: Mapping[Path, str], chosen: Mapping[str, Any], target: Target) -> dict[Path, Result]:
    """The results where each process keeps a part of something, which it cannot for a target; none where it can."""
    for option, rule, shards in _SHARDS:
        if chosen[option] and option.replace("_", "-") not in target.options:
            message = f"{shards} is not for the {target.name} target"
            return refusal(program, rule, message, "ddpify --target none goes back first")
    return {}


def _started_there(program: Mapping[Path, str], scripts: Sequence[Script], target: Target) -> dict[Path, Result]:
    """Refuse to move a program by hand that starts torchrun to a target that has a launcher of its own."""
    if target.processes or options_of(scripts)["entry"] != "spawn":
        return {}
    message = f"this starts torchrun itself, which is not for the {target.name} target"
    return refusal(program, "DDP701", message, "convert it with --entry torchrun first, or go back with --target none")


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
    before = options_of(scripts)
    chosen = _chosen(before, options)
    asks_more = chosen != before
    if lacking := _refused_there(program, chosen, target):
        return lacking
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
    if chosen["sync_batchnorm"] and "sync-batchnorm" not in target.options:
        return {}
    if not target.processes:
        chosen["entry"] = ""
    back, plain = to_one_device(program, scripts, source, replace(options, **before))
    if not plain or by_hand(scripts, back, plain):
        return {}
    texts = {path: result.code for path, result in back.items()}
    moved = convert(texts, replace(options, target=target.name, style="plain", **chosen))
    results = in_turn(program, back, moved)
    if not any(map(is_refused, moved.values())):
        return results
    return {path: replace(each, code=program[path]) for path, each in results.items()} if asks_more else {}


def _brought_up_to_date(
    program: Mapping[Path, str], texts: Mapping[Path, str], plain: Mapping[Path, Result]
) -> dict[Path, Result]:
    """The results of converting what a program stands for, where files that say the same stay byte for byte."""
    results = in_turn(program, {path: Result(text) for path, text in texts.items()}, plain)
    for path, result in results.items():
        if _without_order(parse(path, result.code)) == _without_order(parse(path, program[path])):
            reason = "" if is_refused(result) else "already converted"
            results[path] = Result(program[path], findings=result.findings, reason=reason)
    return results


def _without_order(tree: ast.Module) -> tuple[list[str], list[str]]:
    """What a file says, whatever the order of its imports."""
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    others = [ast.dump(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(imports), others
