"""Networks that draw numbers while they train: the masks of dropout."""

from __future__ import annotations

import ast

from .draws import library_has_dropout
from .values import Module, Value

_WITH_DROPOUT = ("torch.nn.Transformer",)  # 0.1 of it, where nothing else is said

_FUNCTIONS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"})


def draws_masks(module: Module, seen: set[Module] | None = None) -> bool:
    """Whether a network, or a layer in it, drops numbers at random if it is not in evaluation."""
    seen = set() if seen is None else seen
    if module in seen:
        return False
    seen.add(module)
    made = module.made if isinstance(module.made, ast.Call) else None
    if "Dropout" in module.name.rpartition(".")[2] or (module.cls is None and library_has_dropout(module.name)):
        return made is None or not _is_zero(next(iter(made.args), _said(made, "p")))
    rate = _said(made, "dropout") if made is not None and module.cls is None else None
    if rate is not None or module.name.startswith(_WITH_DROPOUT):
        return not _is_zero(rate)
    if module.cls is not None and any(_is_function(node) for node in ast.walk(module.cls.node)):
        return True
    parts = [*module.attributes.values(), *(module.contents.all() if module.contents is not None else ())]
    inner = [*module.layers, *(each for value in parts for each in _modules(value))]
    return any(draws_masks(each, seen) for each in inner)


def _modules(value: Value) -> list[Module]:
    return [each for each in value.things if isinstance(each, Module) and not isinstance(each.made, ast.Module)]


def _said(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _is_zero(rate: ast.expr | None) -> bool:
    return isinstance(rate, ast.Constant) and rate.value == 0


def _is_function(node: ast.AST) -> bool:
    """Whether a class calls a function of dropout itself, `F.dropout(x, training=self.training)`, and not its layer."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _FUNCTIONS and ast.unparse(node.func.value) != "self"
