"""Run one rule alone, on a script that is written in a test."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent
from typing import Any

from ddpify_codemods.facts.script import Script
from ddpify_codemods.rewrite import apply
from ddpify_codemods.rule import Edit, Finding, Rule
from ddpify_codemods.targets import TARGETS


def script_of(source: str, is_entry: bool = True) -> Script:
    """A script of one file."""
    text = dedent(source)
    tree = ast.parse(text)
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))
    return Script(Path("train.py"), text, tree, is_entry=is_entry, defined=defined)


def node_of(script: Script, source: str) -> Any:
    """The first expression of a script whose source this is."""
    return next(node for node in script.nodes if isinstance(node, ast.expr) and ast.unparse(node) == source)


def sources_of(nodes: Iterable[ast.AST]) -> list[str]:
    """The source of each node."""
    return [ast.unparse(node) for node in nodes]


def edits_of(rule: Rule, source: str, target: str = "cpu", is_entry: bool = True) -> list[Edit]:
    """The edits that a rule asks for."""
    items = rule.check(script_of(source, is_entry), TARGETS[target])
    return [item for item in items if not isinstance(item, Finding)]


def findings_of(rule: Rule, source: str, target: str = "cpu") -> list[Finding]:
    """What a rule has to say, of the file and of a program that is this file."""
    script = script_of(source)
    items = [*rule.check(script, TARGETS[target])]
    of_program = rule.check_program
    edits = [item for item in items if not isinstance(item, Finding)]
    told = [finding for _, finding in of_program([script], TARGETS[target], edits)] if of_program else []
    return [*(item for item in items if isinstance(item, Finding)), *told]


def assert_silent(rule: Rule, source: str, target: str = "cpu", is_entry: bool = True) -> None:
    """A rule has nothing to do with a script, and refuses no program that is this script."""
    assert list(rule.check(script_of(source, is_entry), TARGETS[target])) == []
    assert not [finding for finding in findings_of(rule, source, target) if finding.severity == "refused"]


def assert_refused(rule: Rule, source: str, line: int) -> None:
    """A rule refuses a script, once, because of a line; says why and what to do."""
    [finding] = findings_of(rule, source)
    assert (finding.rule, finding.severity, finding.line) == (rule.id, "refused", line)
    assert finding.message and finding.remedy


def rewritten(rule: Rule, source: str, target: str = "cpu") -> str:
    """A script after the edits of one rule, without the import of ddpify_runtime."""
    script = script_of(source)
    edits = [item for item in rule.check(script, TARGETS[target]) if not isinstance(item, Finding)]
    lines = apply(script.text, script.tree, edits).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("from ddpify_runtime import "))
