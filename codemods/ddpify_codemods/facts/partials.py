"""Functions that get some of their arguments before they are called: `functools.partial(MNIST, download=True)`."""

from __future__ import annotations

import ast

from .script import Script


def partial_of(script: Script, node: ast.AST) -> ast.expr | None:
    """The function for which an expression keeps arguments; None for other expressions."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "functools.partial":
        return None
    return node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
