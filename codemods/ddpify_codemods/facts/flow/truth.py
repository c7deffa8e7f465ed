"""Which way a condition takes that is a value, and no comparison: `if optimizer:`."""

from __future__ import annotations

import ast

from .values import OptimizerValue, Value

MAY_TRAIN = (
    "whether this loop trains, or evaluates, is not known for each of its loaders, and samples of training are drawn "
    "twice to make batches equal, which an evaluation would count; a loop for each is meant as a rule"
)


def truth(test: ast.expr, value: Value) -> bool | None:
    """Whether a condition holds; None where that is not known.

    An optimizer is true, as each object whose class has neither `__bool__` nor `__len__`; None is not.

    Args:
        test: the condition, or what `not` stands before; value: what it holds.
    """
    if isinstance(value.constant, bool):
        return value.constant
    if not isinstance(test, ast.Name | ast.Attribute) or value.is_local:
        return None
    if value.is_none:
        return False
    are_optimizers = len(value.only(OptimizerValue)) == len(value.things) > 0
    return True if value.is_none is False and are_optimizers else None


def is_same_in(loop: ast.AST, test: ast.expr) -> bool:
    """Whether a condition is the same in each turn of a loop, as far as assignments tell: it calls nothing, and the
    loop stores none of what it names."""
    if any(isinstance(each, ast.Call) for each in ast.walk(test)):
        return False
    kinds = ast.Name | ast.Attribute
    stored = {ast.unparse(e) for e in ast.walk(loop) if isinstance(e, kinds) and not isinstance(e.ctx, ast.Load)}
    return stored.isdisjoint(ast.unparse(each) for each in ast.walk(test) if isinstance(each, kinds))
