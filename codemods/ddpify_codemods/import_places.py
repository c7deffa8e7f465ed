"""Where new imports go: where isort would put them in a section that is sorted, else after the import of torch."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from .facts.header import last_leading_import
from .rule import Insert

ImportStatement: TypeAlias = ast.Import | ast.ImportFrom


def insertions(tree: ast.Module, lines: Iterable[str], before: float = float("inf")) -> list[Insert]:
    """Put import statements, each given as its source, among the leading imports of a file.

    Args: the file; the new statements; the line that needs them first.
    Returns the insertions.
    """
    last = last_leading_import(tree, before)
    leading = list(_sections(tree, last))
    ordered = sorted(lines, key=lambda line: _key(_parsed(line)))
    standard = [
        [each for each in section if not _is_future(each)] for section in leading if all(map(_is_standard, section))
    ]
    standard = [section for section in standard if section]
    inserts: list[Insert] = []
    if standard and _is_sorted(standard[0], standard=True):
        inserts = [_in_section(standard[0], line) for line in ordered if _is_standard(_parsed(line))]
        ordered = [line for line in ordered if not _is_standard(_parsed(line))]
    elif ordered and (beside := _run_of_standard(leading)):
        own = [line for line in ordered if _is_standard(_parsed(line))]
        inserts = [_in_section(beside, line) for line in own] if _is_sorted(beside, standard=True) else []
        inserts = inserts or [_insert(beside[-1], "\n".join(own), after=True)] if own else []
        ordered = [line for line in ordered if line not in own]
    above = tree.body[: tree.body.index(last) + 1] if last is not None else []
    stars = [each for each in above if _imports_all(each)]
    return [*inserts, *(_after(stars, insert) for insert in _installed(tree, last, leading, ordered))]


def _run_of_standard(leading: list[list[ImportStatement]]) -> list[ImportStatement]:
    """The first imports of the standard library that stand together, in a section with others."""
    for section in leading:
        run: list[ImportStatement] = []
        for each in section:
            if _is_standard(each) and not _is_future(each):
                run.append(each)
            elif run:
                break
        if run:
            return run
    return []


def _imports_all(node: ast.stmt) -> bool:
    """Whether a statement is a star of a library or of the script's own modules, or a block with one."""
    imports = (each for each in ast.walk(node) if isinstance(each, ast.ImportFrom) and each.names[0].name == "*")
    return any(not _is_standard(each) for each in imports)


def _after(stars: list[ast.stmt], insert: Insert) -> Insert:
    """The same behind `from torch.utils.data import *`, which would put torch's DataLoader in the place of another."""
    first = ast.parse(insert.code).body[0]
    is_standard = isinstance(first, ImportStatement) and _is_standard(first)
    if not stars or is_standard or insert.at.lineno >= stars[-1].lineno:
        return insert
    return _insert(stars[-1], insert.code.removesuffix("\n"), after=True)


def _installed(
    tree: ast.Module, last: ast.stmt | None, leading: list[list[ImportStatement]], ordered: list[str]
) -> Iterator[Insert]:
    sections = [each for each in leading if any("torch" in _roots(statement) for statement in each)]
    sections = sections or [each for each in leading if not any(_is_standard(statement) for statement in each)][:1]
    above = [line for line in ordered if _is_standard(_parsed(line))]
    first = next((each for section in leading for each in section if not _is_future(each)), None)
    if above and first is not None:
        yield replace(_insert(first, "\n".join(above), after=False), apart=True)
        ordered = [line for line in ordered if line not in above]
    if len(sections) == 1 and _is_sorted(sections[0], standard=False):
        yield from (_in_section(sections[0], line) for line in ordered)
    elif ordered:
        beside = [each for section in sections for each in section if "torch" in _roots(each)]
        at = beside[-1] if beside else last
        own_section = "\n" if leading and not sections else ""
        yield _insert(at or tree.body[0], own_section + "\n".join(ordered), after=at is not None)


def _is_sorted(section: list[ImportStatement], standard: bool) -> bool:
    """Whether a section is one of isort's: of the standard library alone or without it, in its order."""
    if any(_is_standard(each) is not standard for each in section):
        return False
    return all(_key(first) <= _key(second) for first, second in pairwise(section))


def _in_section(section: list[ImportStatement], line: str) -> Insert:
    earlier = [each for each in section if _key(each) <= _key(_parsed(line))]
    return _insert(earlier[-1], line, after=True) if earlier else _insert(section[0], line, after=False)


def _insert(at: ast.stmt, code: str, after: bool) -> Insert:
    return Insert(at, f"{code}\n", "", "after" if after else "before", above=isinstance(at, ImportStatement))


def _sections(tree: ast.Module, last: ast.stmt | None) -> Iterator[list[ImportStatement]]:
    section: list[ImportStatement] = []
    end = tree.body.index(last) if last is not None else -1
    for node in tree.body[: end + 1]:
        if section and (not isinstance(node, ImportStatement) or node.lineno > _last_line(section[-1]) + 1):
            yield section
            section = []
        if isinstance(node, ImportStatement):
            section.append(node)
    if section:
        yield section


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _roots(node: ImportStatement) -> set[str]:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return {name.split(".")[0] for name in names}


def _is_future(node: ImportStatement) -> bool:
    return "__future__" in _roots(node)


def _is_standard(node: ImportStatement) -> bool:
    return bool(_roots(node) & sys.stdlib_module_names)


def _parsed(line: str) -> ImportStatement:
    (statement,) = ast.parse(line).body
    assert isinstance(statement, ImportStatement)
    return statement


def _key(node: ImportStatement) -> tuple[object, ...]:
    """The order of isort's default profile within a section."""
    if isinstance(node, ast.Import):
        return False, _natural(node.names[0].name), node.names[0].asname or ""
    first = node.names[0].name
    return True, _natural("." * node.level + (node.module or "")), (first == first.lower(), first)


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """`cifar9` before `cifar10`."""
    return tuple((text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name.lower()))
