"""Whether a tensor is known to carry no gradient, for what may leave autograd."""

from __future__ import annotations

import ast

from .origins import origins, sources
from .script import Script

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
_DETACHES = frozenset({"detach", "item", "numpy", "tolist"})
_MADE = frozenset(f"torch.{name}" for name in ("tensor", "zeros", "ones", "full", "arange", "FloatTensor", "as_tensor"))


def runs_without_gradient(script: Script, node: ast.AST) -> bool:
    """Whether a node stands below torch.no_grad(), or in a function that has it as a decorator."""
    around = (item for parent in script.ancestors(node) if isinstance(parent, ast.With) for item in parent.items)
    functions = (parent for parent in script.ancestors(node) if isinstance(parent, _FUNCTIONS))
    words = [*(item.context_expr for item in around), *(each for one in functions for each in one.decorator_list)]
    called = (each.func if isinstance(each, ast.Call) else each for each in words)
    return any(script.qualified(each) in _NO_GRADIENT for each in called)


def carries_none(script: Script, tensor: ast.expr, call: ast.Call) -> bool:
    """Whether a call of a tensor neither takes a gradient along nor gives one back.

    Args: the file; the tensor that is given; the call, whose result may be read at once: `hvd.allreduce(x).item()`.
    """
    if runs_without_gradient(script, call):
        return True
    reads = script.parents[call]
    if isinstance(reads, ast.Attribute) and reads.attr in _DETACHES:
        return True
    made = [each for each in origins(script, tensor) if not isinstance(each, ast.Name) or not sources(script, each)]
    return bool(made) and all(_is_free(script, each) for each in made)


def _is_free(script: Script, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if script.qualified(node.func) in _MADE:
            return not any(word.arg == "requires_grad" for word in node.keywords)
        if node.func.attr in _DETACHES:
            return True
        node = node.func.value
    return isinstance(node, ast.Constant)
