"""Which loggers rank 0 alone has, how they are used, and what they are asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects
from ...facts.loggers import is_recorded, loggers, tells
from ...facts.origins import assigned
from ...facts.script import Script
from .words import is_here, is_quiet, program_of

_LEVELS = frozenset({"debug", "info", "warning"})


def guarded(script: Script) -> frozenset[str]:
    """The loggers of a file that rank 0 alone has: every use is a statement that only calls a method, or records it."""
    return frozenset(name for name in loggers(script) if not _is_for_all(script, name))


def is_logged(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement only calls a logger, or a function that writes, on rank 0."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    is_method = any(ast.unparse(each) in guarded(script) for each in _owners(statement.value))
    return is_method or any(call is statement.value for call in effects(script))


def prints(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement only prints, which is seen of rank 0 alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_print = isinstance(call, ast.Call) and script.qualified(call.func) == "print"
    return is_print and all(word.arg in ("sep", "end", "flush") for word in call.keywords)  # type: ignore[union-attr]


def is_log_line(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement only gives the log a line, which other ranks than 0 leave out: `logging.info("Created")`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in _LEVELS:
        return False
    made = assigned(script, func.value) if isinstance(func.value, ast.Name) else []
    of_logging = (isinstance(each, ast.Call) and script.qualified(each.func) == "logging.getLogger" for each in made)
    return script.qualified(func.value) == "logging" or (bool(made) and all(of_logging))


def answers(script: Script) -> Iterator[ast.expr]:
    """What loggers that every rank has something in the place of are asked for, where rank 0 can send the answer."""
    found = program_of(script).followed.found
    for node, other in sorted(found.answers.items(), key=lambda each: (each[0].lineno, each[0].col_offset)):
        name = next((each.attr for each in (node, getattr(node, "func", None)) if isinstance(each, ast.Attribute)), "")
        if is_here(script, other) and all(tells(each.script, each.made, name) for each in found.logged[node]):
            yield node


def uses_of(script: Script, name: str) -> Iterator[ast.Name | ast.Attribute]:
    """Where a logger is read by its name."""
    for node in script.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name:
            yield node


def _is_for_all(script: Script, name: str) -> bool:
    """Whether something has to be there on the other ranks, too, by the name of a logger."""
    uses = [node for node in uses_of(script, name) if not is_recorded(script, node)]
    calls = [method_of(script, node, kept=True) for node in uses]
    if not all(call and is_quiet(script, call) and is_alone(script, call) for call in calls):
        return True
    program, last = program_of(script), name.rpartition(".")[2]
    made = set(loggers(script)[name])
    elsewhere = (node for node, each in program.followed.found.logged.items() if made & {one.made for one in each})
    known = {part for call in calls if call is not None for part in (call, *_owners(call))}
    return any(node not in known for node in elsewhere) or any(
        (isinstance(node, ast.Attribute) and "." in name and node.attr == last)
        or (isinstance(node, ast.alias) and node.name == name)
        for other in program.scripts
        if other.path != script.path
        for node in other.nodes
    )


def method_of(script: Script, node: ast.expr, kept: bool = False) -> ast.Call | None:
    """The call of a method of something; kept: or of what it keeps, `run.config.update(…)`."""
    attribute = script.parents[node]
    while kept and isinstance(attribute, ast.Attribute) and isinstance(script.parents[attribute], ast.Attribute):
        attribute = script.parents[attribute]
    call = script.parents[attribute] if isinstance(attribute, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is attribute else None


def is_kept_for(script: Script, node: ast.expr) -> bool:
    """Whether something that a logger keeps is only read for a method of its own, a statement: `run.config`."""
    call = method_of(script, node, kept=True) if isinstance(node, ast.Attribute) else None
    return call is not None and is_alone(script, call)


def _owners(call: ast.Call) -> Iterator[ast.expr]:
    """What a method is called of, and what keeps that: `run.config` and `run` of `run.config.update(…)`."""
    part = call.func
    while isinstance(part, ast.Attribute):
        part = part.value
        yield part


def is_alone(script: Script, call: ast.Call) -> bool:
    """Whether a call is a statement, so that nobody takes its answer."""
    return isinstance(script.parents[call], ast.Expr)
