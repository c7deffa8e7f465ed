"""What a `try` tells of a call that rank 0 alone makes: `try: wandb.init(); online = True`, `except: online = False`.

Where the call fails, the handler runs on rank 0, and the other ranks never come to it: they take what rank 0 was told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects, makes_folder, sample_code
from ...facts.flow.handlers import stops
from ...facts.flow.unequal import comes_unequally
from ...facts.header import is_in_group
from ...facts.loggers import loggers
from ...facts.script import Script
from ...rule import Finding, Insert
from ...targets import Target
from .logged import guarded, prints, uses_of
from .rank_0_alone import is_for_rank_0
from .words import program_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MESSAGE = "take what rank 0 was told of a call that it makes alone"
_REASON = "rank 0 alone makes a call that may end here, and the other ranks would go on with another `{}`"
_REMEDY = "set it to True or False in the try and in each handler, or use --style exact"
_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError"})


def told_by_try(script: Script, target: Target) -> Iterator[Insert | Finding]:
    """Send what rank 0 was told to the others, behind the `try`; refuse what cannot be sent."""
    for around in script.find(ast.Try):
        handlers = [each for each in around.handlers if not _of_imports(each) and not stops(script, each)]
        if not handlers or is_for_rank_0(script, around) or not _calls_alone(script, around):
            continue
        for code in _told(script, around, handlers):
            if _can_be_sent(script, around, handlers, code):
                sent = f"{code} = from_rank_0({code})"
                yield Insert(around, sent, _MESSAGE, "after", modules=target.words.imports)
            else:
                yield Finding("DDP614", "refused", around.lineno, _REASON.format(code), _REMEDY)


def _of_imports(handler: ast.ExceptHandler) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(each is not None and ast.unparse(each) in _IMPORTS for each in types)


def _calls_alone(script: Script, around: ast.Try) -> bool:
    """Whether rank 0 alone makes a call in the body of a `try`, which no other one in it is around."""
    of_samples = sample_code(script)
    alone: set[ast.AST] = {
        each for each in effects(script) if each not in of_samples and not makes_folder(script, each)
    }
    alone |= {use for name in guarded(script) for use in uses_of(script, name)}
    return any(_nearest(script, each) is around for each in alone if _is_in(script, around.body, each))


def _is_in(script: Script, body: list[ast.stmt], node: ast.AST) -> bool:
    return any(each in body for each in (node, *script.ancestors(node)))


def _nearest(script: Script, node: ast.AST) -> ast.AST | None:
    """The `try` whose handlers come next for what a node raises, in its function."""
    child = node
    for each in script.ancestors(node):
        if isinstance(each, _FUNCTIONS):
            return None
        if isinstance(each, ast.Try) and each.handlers and child in each.body:
            return each
        child = each
    return None


def _told(script: Script, around: ast.Try, handlers: list[ast.ExceptHandler]) -> list[str]:
    """The names, and attributes, that are set otherwise where the body of a `try` ends early, and read by all ranks."""
    kept = {*loggers(script)}
    set_there = _stored(part for each in handlers for part in each.body)
    set_there |= _stored(part for part in (*around.body, *around.orelse) if _is_flag(part))
    return sorted(code for code in set_there - kept if _is_read(script, around, code))


def _stored(statements: Iterator[ast.stmt]) -> set[str]:
    parts = (part for each in statements for part in ast.walk(each) if isinstance(part, ast.Name | ast.Attribute))
    return {ast.unparse(part) for part in parts if isinstance(part.ctx, ast.Store)}


def _is_flag(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)


def _is_read(script: Script, around: ast.Try, code: str) -> bool:
    """Whether more is done with a name, behind or outside of a `try`, than rank 0 does alone or prints."""
    last = code.rpartition(".")[2]
    inside = {*ast.walk(around)}
    scope, local = script.scope(around), "." not in code and not isinstance(script.scope(around), ast.Module)
    for other in program_of(script).scripts if "." in code else (script,):
        for node in other.find(ast.Name, ast.Attribute):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name != last or not isinstance(node.ctx, ast.Load) or node in inside:
                continue
            if local and script.scope(node) is not scope:
                continue
            if other is not script or not (prints(script, script.statement(node)) or is_for_rank_0(script, node)):
                return True
    return False


def _can_be_sent(script: Script, around: ast.Try, handlers: list[ast.ExceptHandler], code: str) -> bool:
    """Whether each rank comes behind a `try`, where a name has a constant, or what it had before."""
    program, inside = program_of(script), [*ast.walk(around)]
    if comes_unequally(program.followed.found, program.followed.status, script, around):
        return False
    if not is_in_group(script, around) or any(isinstance(e, ast.Return | ast.Break | ast.Continue) for e in inside):
        return False
    stores = [each for each in inside if isinstance(each, ast.stmt) and code in _stored_by(each)]
    bodies = [[*around.body, *around.orelse], *(each.body for each in handlers)]
    is_set = all(any(each in body for each in stores) for body in bodies) or _is_set_before(script, around, code)
    return is_set and all(map(_is_flag, stores))


def _stored_by(statement: ast.stmt) -> set[str]:
    simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Import | ast.ImportFrom)
    return _stored(iter([statement])) if simple else set()


def _is_set_before(script: Script, around: ast.Try, code: str) -> bool:
    """Whether a name has a constant above a `try`, in its block, or an attribute is read or set in its function."""
    block = script.block(around)
    above = block[: block.index(around)]
    if any(_is_flag(each) and code in _stored_by(each) for each in above):
        return True
    parts = (part for part in ast.walk(script.scope(around)) if isinstance(part, ast.Attribute))
    return "." in code and any(part.lineno < around.lineno and ast.unparse(part) == code for part in parts)
