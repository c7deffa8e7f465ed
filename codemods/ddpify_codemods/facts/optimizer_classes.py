"""Which expressions are classes of optimizers: torch's, those of a table, those that are made or looked up."""

from __future__ import annotations

import ast
from functools import lru_cache

from .origins import sources
from .script import KEPT, Script

# Of libraries that have, or had, optimizers of their own.
_OF_LIBRARIES = frozenset(
    {f"transformers.{place}{name}" for place in ("", "optimization.") for name in ("AdamW", "Adafactor")}
    | {f"pytorch_transformers.{place}AdamW" for place in ("", "optimization.")}
    | {f"pytorch_pretrained_bert.{place}BertAdam" for place in ("", "optimization.")}
)
_NOT_OPTIMIZERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")


@lru_cache(maxsize=16 * KEPT)
def is_optimizer_class(script: Script, func: ast.expr, depth: int = 4) -> bool:
    """Whether an expression is a class of optimizers: by name, looked up in torch.optim or in a table."""
    if not _mentions_optimizers(script):
        return False
    name = script.qualified(func)
    if name.startswith("torch.optim.") and not name.startswith(_NOT_OPTIMIZERS):
        return name.rpartition(".")[2][0].isupper() and not name.endswith(".Optimizer")
    if name in _OF_LIBRARIES:
        return True
    if isinstance(func, ast.Call):
        called = script.qualified(func.func)
        if called in ("getattr", "vars") and func.args and _is_torch_optim(script, func.args[0]):
            return True
        if called == "eval":
            return "optim." in ast.unparse(func)
        if called.rpartition(".")[2] == "partial":
            return is_optimizer_class(script, func.args[0], depth) if func.args else False
        found = func.func.value if isinstance(func.func, ast.Attribute) and func.func.attr == "get" else None
        return found is not None and _holds_optimizer_classes(script, found, depth)
    if isinstance(func, ast.Subscript):
        return script.qualified(func.value) == "torch.optim.__dict__" or (
            _holds_optimizer_classes(script, func.value, depth)
        )
    if isinstance(func, ast.Name) and func.id in _optimizer_subclasses(script):
        return True
    return bool(depth) and any(is_optimizer_class(script, value, depth - 1) for value in _values(script, func))


@lru_cache(maxsize=KEPT)
def _mentions_optimizers(script: Script) -> bool:
    """Whether a class of optimizers can be named in a file at all."""
    return "ptim" in script.text or any("ptim" in origin for origin in script.imported.values())


def _holds_optimizer_classes(script: Script, table: ast.expr, depth: int) -> bool:
    """Whether a dict that is looked into holds classes of optimizers, or functions that build them."""
    if isinstance(table, ast.Dict):
        return any(is_optimizer_class(script, value, depth) for value in table.values)
    if script.qualified(table) == "torch.optim.__dict__" or is_optimizer_class(script, table, 0):
        return True  # vars(torch.optim)
    return bool(depth) and any(_holds_optimizer_classes(script, value, depth - 1) for value in _values(script, table))


def _values(script: Script, node: ast.expr) -> list[ast.expr]:
    """What a variable, an attribute or a choice may hold, as far as this file assigns it."""
    return [] if isinstance(node, ast.Call) else [value for value in sources(script, node) if value is not node]


def _is_torch_optim(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and script.qualified(node.func) == "importlib.import_module" and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == "torch.optim"
    return script.qualified(node) == "torch.optim"


def hands_over_torch_optim(script: Script, call: ast.Call) -> bool:
    """Whether a function is given torch.optim, to choose a class of it: `build(config, torch.optim, params)`."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    chooses = any(script.qualified(value) == "torch.optim" for value in given)
    return chooses and script.qualified(call.func) not in ("getattr", "hasattr", "vars", "dir")


def in_optimizer_class(script: Script, node: ast.AST) -> bool:
    """Whether it stands in an optimizer that the script writes itself, which is given its parameters."""
    around = {parent.name for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)}
    return bool(around & _optimizer_subclasses(script))


@lru_cache(maxsize=KEPT)
def _optimizer_subclasses(script: Script) -> set[str]:
    return {
        node.name
        for node in script.find(ast.ClassDef)
        if any(script.qualified(base).endswith("Optimizer") or _is_optimizer_base(script, base) for base in node.bases)
    }


def _is_optimizer_base(script: Script, base: ast.expr) -> bool:
    name = script.qualified(base)
    return name.startswith("torch.optim.") and not name.startswith(_NOT_OPTIMIZERS)
