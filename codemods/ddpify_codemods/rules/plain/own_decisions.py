"""What waits for all ranks, in models of which each rank takes its own way."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Finding
from .words import REMEDY, is_here, program_of


def decided_alone(rule: str, script: Script, what: str) -> Iterator[Finding]:
    """Where a model draws what it does, each rank for itself, though something in it waits for all ranks."""
    for node, there in program_of(script).followed.found.own_decisions.items():
        if is_here(script, there):
            message = f"each rank decides here by numbers that it draws, and {what} waits for all ranks"
            yield Finding(rule, "refused", node.lineno, message, REMEDY)
