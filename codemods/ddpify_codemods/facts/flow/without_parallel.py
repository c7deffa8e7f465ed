"""Where a program's own conditions say that a model is in no nn.DataParallel: `net.module if use_cuda else net`, where
`if use_cuda:` made it, and `if hasattr(net, "module"):`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..data_parallel import CLASSES
from ..script import Script

_PLAIN = ast.Name | ast.Attribute | ast.Constant | ast.Compare | ast.BoolOp | ast.UnaryOp
_PARTS = ast.expr_context | ast.cmpop | ast.boolop | ast.unaryop
_LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef

Made = tuple[Script, ast.Call]


def is_without_parallel(script: Script, model: ast.expr, made: Iterable[Made]) -> bool:
    """Whether a model is in no nn.DataParallel where it is read.

    Args: the file; the model, as it is read there; where a program puts it into one.
    """
    here = [*_conditions(script, model)]
    if any(not holds and _asks_for_it(script, test, ast.unparse(model)) for test, holds in here):
        return True
    known = [*made]
    return bool(known) and all(there is script and _excludes(script, model, call, here) for there, call in known)


def _excludes(script: Script, model: ast.expr, made: ast.Call, here: list[tuple[ast.expr, bool]]) -> bool:
    """Whether of the conditions at two places one is the other's contrary, and the same at both."""
    contrary = {(ast.unparse(test), not holds) for test, holds in here}
    return any(
        (ast.unparse(test), holds) in contrary and _is_same_at_both(script, test, made, model)
        for test, holds in _conditions(script, made)
    )


def _conditions(script: Script, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """What holds at a place of a function, and what does not."""
    child = node
    for parent in script.ancestors(node):
        if isinstance(child, ast.stmt):
            block = script.block(child)
            for before in block[: block.index(child)]:
                if isinstance(before, ast.If) and not before.orelse and isinstance(before.body[-1], _LEAVES):
                    yield from _parts(before.test, False)
        if isinstance(parent, _FUNCTIONS | ast.Lambda):
            return
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            in_body = child is parent.body if isinstance(parent, ast.IfExp) else child in parent.body
            yield from _parts(parent.test, in_body)
        child = parent


def _parts(test: ast.expr, holds: bool) -> Iterator[tuple[ast.expr, bool]]:
    """A condition that holds, or does not, and those that then do so as well."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand, not holds)
        return
    yield test, holds
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        for each in test.values:
            yield from _parts(each, holds)


def _asks_for_it(script: Script, test: ast.expr, model: str) -> bool:
    """Whether a condition asks for nn.DataParallel: `isinstance(net, nn.DataParallel)`, `hasattr(net, "module")`."""
    if not isinstance(test, ast.Call) or len(test.args) != 2 or ast.unparse(test.args[0]) != model:
        return False
    name, asked = script.qualified(test.func), test.args[1]
    if name == "hasattr":
        return isinstance(asked, ast.Constant) and asked.value == "module"
    classes = asked.elts if isinstance(asked, ast.Tuple) else [asked]
    return name == "isinstance" and any(script.qualified(each) in CLASSES for each in classes)


def _is_same_at_both(script: Script, test: ast.expr, made: ast.Call, model: ast.expr) -> bool:
    """Whether a condition is the same where nn.DataParallel is made and where the model is read: nothing below the
    first place gives what it asks for another value, and a variable of a function is that of the same one."""
    functions = {script.scope(made), script.scope(model)}
    for each in ast.walk(test):
        if isinstance(each, ast.Call) and not _is_answered_alike(script, each):
            return False
        if not isinstance(each, _PLAIN | _PARTS | ast.Call):
            return False
        if isinstance(each, ast.Name | ast.Attribute) and _is_stored_below(script, ast.unparse(each), made.lineno):
            return False
        alone = isinstance(each, ast.Name) and not isinstance(script.parents[each], ast.Attribute)
        if alone and len(functions) > 1 and any(_binds(script, scope, ast.unparse(each)) for scope in functions):
            return False
    return True


def _is_answered_alike(script: Script, call: ast.Call) -> bool:
    """Whether a call asks for what stays as it is while a program runs: `torch.cuda.is_available()`."""
    name = script.qualified(call.func)
    return name == "len" or name.startswith("torch.cuda.")


def _is_stored_below(script: Script, code: str, line: int) -> bool:
    return any(
        node.lineno > line and not isinstance(node.ctx, ast.Load) and ast.unparse(node) == code
        for node in script.find(ast.Name, ast.Attribute)
    )


def _binds(script: Script, scope: ast.AST, name: str) -> bool:
    """Whether a function has a variable of its own by a name."""
    if not isinstance(scope, _FUNCTIONS):
        return False
    return bool(script.stores.get((scope, name))) or any(
        each.arg == name for each in ast.walk(scope.args) if isinstance(each, ast.arg)
    )
