"""Arrays of numpy that loops add up: they are arrays after they were brought together, too."""

from __future__ import annotations

import ast

from ...facts.script import Script


def array_function(script: Script, at: ast.stmt, name: str) -> str:
    """What makes an array, `np.array`, where numpy has made what a variable is before a statement; "" for others."""
    given = [
        node.value
        for node in script.find(ast.Assign)
        if name in map(ast.unparse, node.targets) and script.scope(node) is script.scope(at) and node.lineno < at.lineno
    ]
    made = [
        call.func.value
        for call in given
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and script.qualified(call.func.value) == "numpy"
    ]
    return f"{ast.unparse(made[0])}.array" if made and len(made) == len(given) else ""
