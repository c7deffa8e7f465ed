"""The two styles of conversion: exact, with ddpify_runtime, and plain, with torch alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache

from .facts.flow.program import Program
from .facts.script import KEPT, Script
from .rule import ChangeArgument, Edit, Finding, Insert, Replace, ReplaceImport, Rule, place_of
from .targets import Target

STYLES = ("exact", "plain")
_REMEDY = "use --style exact, or let rank 0 take it and send it with torch.distributed.broadcast_object_list"


@cache
def plain_rules() -> tuple[Rule, ...]:
    """The rules of the plain style: its own, and those of the exact style that need nothing of ddpify_runtime."""
    from .rules import in_folders

    shared = in_folders("always", "devices", "convert", "refuse", "lint")
    return (*(replace(rule, check=_without_runtime(rule)) for rule in shared), *in_folders("plain"))


def in_program(
    scripts: Iterable[Script], sync_batchnorm: bool = False, per_process: bool = False, fully_sharded: bool = False
) -> list[Script]:
    """The scripts of a program, each knowing the others."""
    return [*_in_program(tuple(scripts), sync_batchnorm, per_process, fully_sharded)]


@lru_cache(maxsize=KEPT)
def _in_program(
    scripts: tuple[Script, ...], sync_batchnorm: bool, per_process: bool, fully_sharded: bool
) -> tuple[Script, ...]:
    """The very same objects for the same program, so that it is followed once."""
    program = Program(scripts, sync_batchnorm, per_process, fully_sharded)
    return tuple(replace(script, program=program) for script in scripts)


def _without_runtime(rule: Rule):  # type: ignore[no-untyped-def]
    """What a rule says, where an edit that would import ddpify_runtime is refused."""

    def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
        for item in rule.check(script, target):
            if isinstance(item, ReplaceImport) or (
                isinstance(item, Replace | Insert | ChangeArgument) and item.imports
            ):
                message = f"{item.message}: plain code has nothing for it"
                yield Finding(rule.id, "refused", place_of(item).lineno, message, _REMEDY)
            else:
                yield item

    return check
