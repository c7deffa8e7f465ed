"""The plain style: the conversion of a program to torch's own words, or to those of another engine."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..facts import distribution
from ..facts.host_by_choice import may_stay_on_host
from ..facts.named_devices import names_gpu
from ..facts.script import Script
from ..facts.trail import lost_trail
from ..found import Found, ask, ask_program, is_refused, refused_at, rewritten, trains, untouched
from ..layout import CALLS, laid_out
from ..options import ConversionOptions, Convert
from ..plain_words import TORCH
from ..reading import read
from ..result import ConversionBug, Result, in_turn, original_lines, refusal, unchanged
from ..rule import Finding, Folder
from ..targets import TARGETS, Target
from ..view import View
from .converted_file import Move, is_per_process, target_of, to_one_device
from .early import joined_above, too_early, with_program
from .from_exact import moved
from .results import results_of
from .to_xla import to_xla
from .waits_alone import waits_alone

_LONG_CALLS = (*CALLS, "DistributedDataParallel")  # what goes again as a whole is not put on one line


def with_plain_rules(
    program: Mapping[Path, str],
    scripts: Sequence[Script],
    target: Target,
    options: ConversionOptions,
) -> dict[Path, Result]:
    """Convert the files of one program; for a target that has its own words for that, by way of another.

    Args: its texts and its scripts; the target; what else is asked for.
    """
    from ..rules import in_folders
    from ..rules.plain.padded_loader import padded_loaders
    from ..rules.plain.wrapper import sends_from_host
    from ..styles import in_program, plain_rules

    has_loop = trains(scripts)
    first = replace(target, modules=target.plain_modules)
    if target.module and target.words is TORCH and not names_gpu(scripts):
        first = first.on_host()
    if target.plain_by_way_of:
        first = replace(
            TARGETS[target.plain_by_way_of],
            plain_wrapper_arguments=target.wrapper_arguments,
            plain_moves_inputs="",
            synchronizes_batch_norm=target.synchronizes_batch_norm,
            retargets=target.retargets,
        )
    scripts = in_program(scripts, options.sync_batchnorm, bool(options.per_process), bool(options.fully_sharded))
    if has_loop and target.module and first.words is TORCH and not target.plain_by_way_of:
        if names_gpu(scripts) and may_stay_on_host(scripts):
            first = first.by_choice()
        elif any(map(padded_loaders, scripts)) or sends_from_host(scripts):
            first = first.with_host()
    chosen = plain_rules() if has_loop else in_folders("always")
    found = ask_program(scripts, first, chosen, modernize=False)
    if has_loop and (above := joined_above(found, first.words, bool(first.module))) is not None:
        scripts = with_program(scripts, above)
        found = ask_program(scripts, first, chosen, modernize=False)
    if has_loop:
        found = [too_early(each, first.words) for each in waits_alone(found, first.words)]
    found = [replace(each, findings=_of_style(target, each.findings)) for each in found]
    if any(map(is_refused, found)):
        return untouched(found)
    if not has_loop:
        trail = lost_trail(scripts)
        return unchanged(program, "no training loop") if trail is None else refused_at(found, trail)
    results = _laid_out(found, target.launch if target.starts_itself else "")
    texts = {path: result.code for path, result in results.items()}
    if any("ddpify_runtime" in text for text in texts.values()):
        raise ConversionBug(f"{scripts[0].path}: plain code imports ddpify_runtime")
    _, again = read(texts, options.roots)
    if not distribution.speaks(again, first.words):
        raise ConversionBug(f"{scripts[0].path}: the outcome joins no process group")
    by_hand = results
    if first.words is not TORCH:  # the rules for hand-written code know torch's words
        twin = replace(first, words=TORCH)
        by_hand = _laid_out([ask(script, twin, chosen, modernize=False) for script in scripts])
        _, again = read({path: result.code for path, result in by_hand.items()}, options.roots)
    warned = [_asked_by_hand(each, first, again) for each in again]
    if any(_is_lint(finding) for each in warned for finding in each.findings):
        refused = _warned(program, by_hand, warned)
        return {path: replace(each, findings=_of_style(target, each.findings)) for path, each in refused.items()}
    return results


def in_other_words(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, rules: Folder
) -> dict[Path, Result]:
    """Move a program that is distributed by hand with torch to the words of another engine."""
    from ..rules import in_folders
    from ..styles import in_program

    chosen = in_folders("always", rules)
    found = ask_program(in_program(scripts), target, chosen, modernize=False)
    if any(map(is_refused, found)):
        return untouched(found)
    results = results_of(found)
    _, again = read({path: result.code for path, result in results.items()})
    if not distribution.speaks(again, target.words):
        raise ConversionBug(f"{scripts[0].path}: the outcome joins no processes")
    return results


def _laid_out(found: Iterable[Found], launch: str = "") -> dict[Path, Result]:
    """The results of a conversion whose long calls of loaders and the like are put on several lines."""
    return {
        each.script.path: Result(
            laid_out(each.script.text, rewritten(each), _LONG_CALLS), each.changes, each.findings, launch=launch
        )
        for each in found
    }


def _of_style(target: Target, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What rules say, where a target has no exact style to turn to."""
    if not target.only_plain:
        return tuple(findings)
    exact = ("--style exact", "another target with --style exact")
    return tuple(replace(each, remedy=each.remedy.replace(*exact)) for each in findings)


def _asked_by_hand(script: Script, target: Target, scripts: Sequence[Script]) -> Found:
    """What the rules for hand-written code find in a file, but for two that see less than following the program does.

    One looks for set_epoch() in a file alone: a program may import a loader from a file whose own training it does not
    run, and tell the epoch itself. One takes the numbers that end a training for those of a rank where it does not see
    which data they are of.
    """
    from ..rules import in_folders

    found = ask(script, target, in_folders("lint"), modernize=False)
    calls = (call for each in scripts for call in each.find(ast.Call))
    epoch_told = any(isinstance(call.func, ast.Attribute) and call.func.attr == "set_epoch" for call in calls)
    known = {"DDP506"} | ({"DDP501"} if epoch_told else set())
    return replace(found, findings=tuple(each for each in found.findings if each.rule not in known))


def _is_lint(finding: Finding) -> bool:
    """Whether a rule for hand-written code warns; what it only notes, such as local BatchNorm, DDP611 says."""
    return finding.rule.startswith("DDP5") and finding.severity != "note"


def _warned(program: Mapping[Path, str], results: Mapping[Path, Result], warned: Sequence[Found]) -> dict[Path, Result]:
    """Refuse a conversion in which the rules for hand-written code find something."""
    refused = {}
    for each in warned:
        path = each.script.path
        lines = original_lines(program[path], results[path].code)
        findings = [
            Finding("DDP610", "refused", lines(found.line), f"by hand, too: {found.message}", "use --style exact")
            for found in each.findings
            if _is_lint(found)
        ]
        refused[path] = Result(program[path], findings=(*results[path].findings, *findings))
    return refused


def to_plain(
    program: Mapping[Path, str],
    views: Mapping[Path, View],
    scripts: Sequence[Script],
    target: Target,
    options: ConversionOptions,
    convert: Convert,
) -> dict[Path, Result]:
    """Convert the files of one program to the plain style; for XLA by way of code for GPUs, which is then moved."""
    shards_optimizers = options.optimizer_sharding or any(seen.sharded for seen in views.values())
    if views and options.fully_sharded and "fully-sharded" not in target.options:
        message, remedy = f"fully_shard is not for the {target.name} target", "ddpify --target none goes back first"
        return refusal(program, "DDP128", message, remedy)
    if views and shards_optimizers and "optimizer-sharding" not in target.options:
        message = f"ZeroRedundancyOptimizer is not for the {target.name} target"
        return refusal(program, "DDP125", message, "ddpify --target none goes back first")
    kind = distribution.kind(scripts)
    if kind != "one process" and target.retargets == "own":
        return convert(program, ConversionOptions(target.name, roots=options.roots))
    if distribution.speaks(scripts, target.words):
        return unchanged(program, f"distributed with {target.words.name} already")
    if kind != "one process" and not (target.only_plain or target.words.averaging):
        return unchanged(program, "distributed with torch already")
    if kind == "eager" and target.only_plain:
        return in_other_words(program, scripts, target, "ignite")
    if views:
        moves = {path: to_one_device(seen, target_of(views.values())) for path, seen in views.items()}
        plain = ConversionOptions(
            target.name,
            roots=options.roots,
            style="plain",
            sync_batchnorm=options.sync_batchnorm,
            per_process=is_per_process(views.values()) if options.per_process is None else options.per_process,
            optimizer_sharding=shards_optimizers,
            backend=target.backend,
            entry="spawn" if target.starts_itself else "",
            fully_sharded=options.fully_sharded,
        )
        return moved(program, moves, lambda texts: convert(texts, plain))
    refused = _refused_by_both_styles(scripts, target)
    if refused:
        return refused
    results = with_plain_rules(program, scripts, target, options)
    if all(result.code == program[path] for path, result in results.items()) and trains(scripts):
        joined = _with_joined_backwards(program, scripts, target, options, convert)
        if joined:
            return joined
    if not target.plain_by_way_of or all(result.code == program[path] for path, result in results.items()):
        return results
    texts = {path: result.code for path, result in results.items()}
    _, by_hand = read(texts, options.roots)
    moving = ConversionOptions(target.name, roots=options.roots)
    moved_on = to_xla(texts, by_hand, target, distribution.kind(by_hand), moving)
    return in_turn(program, results, _without_own_lines(program, moved_on))


def _refused_by_both_styles(scripts: Sequence[Script], target: Target) -> dict[Path, Result]:
    """The refusal of a program that neither style converts, which need not be followed; empty if there is none."""
    from ..styles import in_program, plain_rules

    if not trains(scripts):
        return {}
    rules = tuple(rule for rule in plain_rules() if rule.folder in {"always", "refuse"})
    found = ask_program(in_program(scripts), target, rules, modernize=False)
    if not any(map(is_refused, found)):
        return {}
    return untouched([replace(each, findings=_of_style(target, each.findings)) for each in found])


def _with_joined_backwards(
    program: Mapping[Path, str], scripts: Sequence[Script], target: Target, options: ConversionOptions, convert: Convert
) -> dict[Path, Result]:
    """The conversion of a program whose backward passes through one forward are made one; nothing where that is
    refused as well.

    Args: as for `to_plain`.
    """
    from ..rules.plain.joined_backwards import RULE, joins
    from ..styles import in_program

    several = in_program(scripts, options.sync_batchnorm, bool(options.per_process), bool(options.fully_sharded))
    edits = {each.path: tuple((RULE.id, edit) for edit in joins(each)) for each in several}
    moves = {path: Move(each) for path, each in edits.items() if each}
    if not moves:
        return {}
    plain = replace(options, target=target.name, style="plain")
    results = moved(program, moves, lambda texts: convert(texts, plain))
    return results if any(result.code != program[path] for path, result in results.items()) else {}


def _without_own_lines(program: Mapping[Path, str], results: Mapping[Path, Result]) -> dict[Path, Result]:
    """The results without what is refused in lines that the conversion wrote itself, where more is refused."""

    def is_own(path: Path, finding: Finding) -> bool:
        lines = results[path].code.splitlines()
        written = finding.line > 1 and lines[finding.line - 1] not in program[path].splitlines()
        return finding.severity == "refused" and written

    refused = [(path, each) for path, result in results.items() for each in result.findings]
    if all(is_own(path, each) for path, each in refused if each.severity == "refused"):
        return dict(results)
    return {
        path: replace(result, findings=tuple(each for each in result.findings if not is_own(path, each)))
        for path, result in results.items()
    }
