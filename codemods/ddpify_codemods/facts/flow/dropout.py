"""Networks that draw numbers while they train: the masks of dropout."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..script import KEPT
from .noise import makes_dropout
from .values import Module, Value

_FUNCTIONS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"})


def draws_masks(module: Module, evaluates: bool = False, seen: set[Module] | None = None) -> bool:
    """Whether a network, or a layer in it, drops numbers at random.

    Args:
        evaluates: whether it is in evaluation, where only `F.dropout(x)` does, which is not told so.
    """
    seen = set() if seen is None else seen
    if module in seen:
        return False
    seen.add(module)
    if module.cls is not None and calls_dropout(module.cls.node, evaluates):
        return True
    parts = [*module.attributes.values(), *(module.contents.all() if module.contents is not None else ())]
    inner = [*module.layers, *(each for value in parts for each in _modules(value))]
    return (not evaluates and _is_dropout(module)) or any(draws_masks(each, evaluates, seen) for each in inner)


def _is_dropout(module: Module) -> bool:
    """Whether a layer drops numbers while it trains."""
    made = module.made if isinstance(module.made, ast.Call) else None
    if "Dropout" in module.name.rpartition(".")[2]:
        return made is None or not _is_zero(next(iter(made.args), _said(made, "p")))
    return module.cls is None and (made is not None and makes_dropout(module.name, made))


def _modules(value: Value) -> list[Module]:
    return [each for each in value.things if isinstance(each, Module) and not isinstance(each.made, ast.Module)]


def _said(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _is_zero(rate: ast.expr | None) -> bool:
    return isinstance(rate, ast.Constant) and rate.value == 0


@lru_cache(maxsize=KEPT)
def calls_dropout(cls: ast.ClassDef, evaluates: bool) -> bool:
    """Whether a class calls a function of dropout itself; evaluates: one that drops numbers in evaluation, too."""
    return any(_is_function(node, evaluates) for node in ast.walk(cls))


def _is_function(node: ast.AST, evaluates: bool) -> bool:
    """Whether a class calls a function of dropout itself, `F.dropout(x, training=self.training)`, and not its layer.

    Args:
        evaluates: whether it is to be one that drops numbers in evaluation, too.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    training = next(iter(node.args[2:3]), _said(node, "training"))
    always = training is None or (isinstance(training, ast.Constant) and training.value is True)
    return node.func.attr in _FUNCTIONS and ast.unparse(node.func.value) != "self" and (always or not evaluates)
