"""Places of all samples of a batch, one after the other, `torch.arange(len(x))`, `range(len(x))`: with them, each takes
of its own, `x[torch.arange(len(x)), chosen]`."""

from __future__ import annotations

import ast

from ..script import Script

# They leave the places in order, each in a row of its own.
_KEEP = frozenset({"to", "cuda", "cpu", "long", "int", "view", "reshape", "unsqueeze", "repeat", "expand", "type_as"})


def counted_places(script: Script, node: ast.expr) -> ast.expr | None:
    """What says how many places there are, if an index, or what it is a name of, is made as above; None for others."""
    if isinstance(node, ast.Name):
        stores = script.stores.get((script.scope(node), node.id), ())
        made = script.parents[stores[0]] if len(stores) == 1 else None
        return counted_places(script, made.value) if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
    if isinstance(node, ast.Subscript):  # [:, None]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        first = parts[0] if parts else None
        whole = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
        new = all(isinstance(each, ast.Constant) and each.value is None for each in parts[1:])
        return counted_places(script, node.value) if whole and new and not isinstance(node.value, ast.Name) else None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP:
        return counted_places(script, node.func.value)
    counts = script.qualified(node.func) in ("torch.arange", "numpy.arange", "range") and len(node.args) == 1
    return node.args[0] if counts and not any(word.arg in ("start", "end", "step") for word in node.keywords) else None
