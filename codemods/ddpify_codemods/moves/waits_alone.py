"""Where rank 0 alone would come to what all ranks have to come to, and wait for them in vain."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..facts.script import Script
from ..facts.tree import walk
from ..found import Found
from ..plain_words import Words
from ..rule import Finding, Guard, Replace, place_of
from ..rules.plain.rank_0_alone import given_to
from .early import sends


def waits_alone(found: Sequence[Found], words: Words) -> list[Found]:
    """The files of a program with a finding for each place where only rank 0 would come to a collective."""
    sent, calls = _waiting(found, words)
    return [replace(each, findings=(*each.findings, *_findings(each, words, sent, calls))) for each in found]


def _findings(found: Found, words: Words, sent: set[ast.AST], calls: set[ast.AST]) -> Iterator[Finding]:
    for node, is_sent_behind in _alone(found, words):
        waiting = calls | (sent - {node} if is_sent_behind else sent)
        first = next((part for part in walk(node) if isinstance(part, ast.expr) and part in waiting), None)
        if first is not None:
            message = f"rank 0 alone computes `{ast.unparse(first)}`, and would wait there for the others"
            yield Finding("DDP607", "refused", first.lineno, message, "compute it in a line before")


def _waiting(found: Sequence[Found], words: Words) -> tuple[set[ast.AST], set[ast.AST]]:
    """The expressions of a program in which ranks wait for each other: those that are sent, and calls of its functions
    in which some are."""
    sent = [(each.script, edit) for each in found for _, edit in each.edits if sends(edit, words)]
    nodes: set[ast.AST] = {edit.node for _, edit in sent if isinstance(edit, Replace)}
    functions = [script.scope(place_of(edit)) for script, edit in sent]
    program = found[0].script.program
    assert program is not None
    waiting, seen = set[ast.AST](), set[ast.AST]()
    while functions:
        function = functions.pop()
        if function not in seen:
            seen.add(function)
            calls = program.followed.found.called_with.get(function, ())
            waiting |= {call for call, _ in calls}
            functions += [script.scope(call) for call, script in calls]
    return nodes, waiting


def _alone(found: Found, words: Words) -> Iterator[tuple[ast.AST, bool]]:
    """What only rank 0 comes to when a file is converted, and whether all take what it is then."""
    for _, edit in found.edits:
        if isinstance(edit, Replace) and f"{{}} if {words.is_rank_0} else " in edit.template:
            yield edit.node, sends(edit, words)
        elif isinstance(edit, Guard) and edit.test == words.is_rank_0:
            yield from ((node, False) for node in _guarded(found.script, edit))


def _guarded(script: Script, edit: Guard) -> Iterator[ast.AST]:
    """The parts of a statement that all ranks do not compute before it."""
    call = edit.at.value if isinstance(edit.at, ast.Expr) else None
    if not edit.named or not isinstance(call, ast.Call):
        yield edit.at
        return
    named = {place for place, _ in edit.named}
    yield from (part for place, part, _ in given_to(script, call) if place not in named)
