"""Meters: classes that make numbers of what they add up, which are read less often than that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .flow.frames import FlowFacts, Reduction, Site
from .plain_code import METER
from .reach import inside, never_used
from .script import Script


@dataclass(frozen=True)
class Meter:
    """A class whose numbers can be brought together where they are read, rather than with each update.

    made: of its attributes, the statements of a method that make them of numbers of this rank. reductions: the
    numbers in them, each "mean" or "sum". reads: where the attributes are read, or the object is whose attributes a
    text shows; but for meters of what each rank draws in an evaluation that all of them go through whole.
    """

    script: Script
    node: ast.ClassDef
    made: dict[str, ast.Assign]
    reductions: dict[ast.expr, str]
    reads: tuple[Site, ...]


def meters(scripts: Sequence[Script], found: FlowFacts) -> tuple[Meter, ...]:
    """The meters of a program. Args: its files, and what is known of them."""
    by_class: dict[ast.ClassDef, list[Reduction]] = {}
    for reductions in found.reductions.values():
        for each in reductions:
            owner = next((one for one in each.script.ancestors(each.node) if isinstance(one, ast.ClassDef)), None)
            if owner is not None:
                by_class.setdefault(owner, []).append(each)
    known = (_meter(scripts, found, node, reductions) for node, reductions in by_class.items())
    return tuple(each for each in known if each is not None)


def _meter(
    scripts: Sequence[Script], found: FlowFacts, node: ast.ClassDef, reductions: Sequence[Reduction]
) -> Meter | None:
    script = reductions[0].script
    made: dict[str, ast.Assign] = {}
    for each in reductions:
        statement = script.statement(each.node)
        target = _made(script, statement)
        if each.kind not in ("mean", "sum") or len(found.reductions[each.node]) > 1 or target is None:
            return None
        assert isinstance(statement, ast.Assign)
        made[target.attr] = statement
    method = script.parents[next(iter(made.values()))]
    reads = [found.attributes_read.get((node, name), set()) for name in made]
    sites = {site.node: site for several in reads for site in several if site is not None}
    if any(node in found.reductions for node in sites):
        return None
    is_known = None not in {site for several in reads for site in several} and sites
    if not is_known or (node, "") in found.attributes_read or not _is_alone(scripts, node):
        return None
    if any(script.parents[each] is not method for each in made.values()) or not _made_last(method, node, made):
        return None
    if not _all_seen(scripts, found, node, made, sites):
        return None
    as_they_are = found.drawn_reads - found.other_reads  # rank 0's, as other numbers of such an evaluation
    together = tuple(site for site in sites.values() if site.node not in as_they_are)
    return Meter(script, node, made, {each.node: each.kind for each in reductions}, together)


def is_made(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement of a method makes an attribute of what its object has added up."""
    return _made(script, statement) is not None


def _made(script: Script, statement: ast.stmt) -> ast.Attribute | None:
    """The attribute of `self.val = val`, or one that is made of other ones by arithmetic alone."""
    method = script.parents[statement]
    if not isinstance(statement, ast.Assign) or not isinstance(method, ast.FunctionDef) or not method.args.args:
        return None
    target, value, this = statement.targets[0], statement.value, method.args.args[0].arg
    if len(statement.targets) > 1 or value.lineno != value.end_lineno:
        return None
    if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != this:
        return None
    given = [each.arg for each in method.args.args[1:]]
    parts = (ast.BinOp, ast.operator, ast.Attribute, ast.Constant, ast.expr_context)
    known = all(isinstance(each, parts) or (isinstance(each, ast.Name) and each.id == this) for each in ast.walk(value))
    return target if known or (isinstance(value, ast.Name) and value.id in given) else None


def _is_alone(scripts: Sequence[Script], node: ast.ClassDef) -> bool:
    """Whether a class is derived from nothing, and nothing from it."""
    bases = [each for each in node.bases if ast.unparse(each) != "object"]
    classes = (each for script in scripts for each in script.find(ast.ClassDef))
    names = {ast.unparse(base).rpartition(".")[2] for each in classes for base in each.bases}
    defined = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return not bases and not node.keywords and node.name not in names and METER not in defined


def _made_last(method: ast.AST, node: ast.ClassDef, made: dict[str, ast.Assign]) -> bool:
    """Whether the attributes are always those of the last update, or constants that the class begins with."""
    updates = set(ast.walk(method))
    for one in made.values():
        used = {each.attr for each in ast.walk(one.value) if isinstance(each, ast.Attribute)}
        used |= {each.attr for each in one.targets if isinstance(each, ast.Attribute)}
        for statement in (each for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not one):
            if not any(isinstance(each, ast.Attribute) and each.attr in used for each in _targets(statement)):
                continue
            begins = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            if not (statement.lineno < one.lineno if statement in updates else begins):
                return False
    return True


def _targets(statement: ast.AST) -> Iterator[ast.expr]:
    if isinstance(statement, ast.Assign):
        yield from statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        yield statement.target


def _all_seen(
    scripts: Sequence[Script],
    found: FlowFacts,
    node: ast.ClassDef,
    made: dict[str, ast.Assign],
    sites: dict[ast.expr, Site],
) -> bool:
    """Whether what is called like these attributes is read where that is known, and set in the class alone; functions
    of imported files that nothing names count for nothing."""
    names = "|".join(map(re.escape, made))
    shows = re.compile(rf"\{{\w*\.({names})\b")
    own = set(ast.walk(node))
    unused = never_used(scripts)
    for script in scripts:
        idle = inside(
            frozenset(each for each in script.tree.body if getattr(each, "name", "") in unused.get(script, ()))
        )
        for each in (each for each in script.nodes if each not in idle):
            if isinstance(each, ast.Attribute) and each.attr in made:
                if each not in (sites if isinstance(each.ctx, ast.Load) else own):
                    return False
            elif isinstance(each, ast.Attribute) and each.attr == "__dict__":
                if each.value not in sites and ast.unparse(each.value) not in script.imported:
                    return False
            elif isinstance(each, ast.Constant) and isinstance(each.value, str) and shows.search(each.value):
                text: ast.AST = each
                while isinstance(script.parents[text], ast.BinOp):
                    text = script.parents[text]
                if script.parents[script.parents[text]] not in found.texts:
                    return False
    return True
