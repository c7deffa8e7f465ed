"""What the parameters of functions are given by those that call them."""

from __future__ import annotations

import ast

from .frames import Frame
from .signatures import argument


def given_to(node: ast.expr, frame: Frame) -> tuple[ast.expr, Frame]:
    """An argument as the outermost call has it that hands it on: `args.n` of `loaders(args.n)`, for `n`."""
    while isinstance(node, ast.Name):
        while frame.caller is None and frame.outer is not None and node.id not in frame.names:
            frame = frame.outer  # of a comprehension, or of what a class is made of
        if not isinstance(frame.call, ast.Call) or frame.caller is None:
            break
        function = frame.node
        if not isinstance(function, ast.FunctionDef) or (function, node.id) in frame.script.stores:
            break
        given = argument(function, node.id, frame.call)
        if given is None:
            break
        node, frame = given, frame.caller
    return node, frame
