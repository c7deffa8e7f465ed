"""Whether a data set of a script changes while its samples are loaded, by the script's source (HAZARDS D20)."""

from __future__ import annotations

import ast


def changed_by_loading(text: str) -> str:
    """Return the attribute that loading a sample changes, such as "self.drawn"; "" if none is seen.

    Args:
        text: source code. What is filled once, such as a cache by index, looks like a change too.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            methods = {node.name: node for node in each.body if isinstance(node, ast.FunctionDef)}
            waiting: list[str] = [name for name in ("__getitem__", "__getitems__") if name in methods]
            for name in waiting:
                for node in ast.walk(methods[name]):
                    if (attribute := _stored(node)) and not _is_tested_for_none(methods[name], attribute):
                        return attribute
                    called = (
                        node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
                    )
                    if called in methods and called not in waiting:
                        waiting.append(called)
    return ""


def _stored(node: ast.AST) -> str:
    """`self.x`, of a statement that changes it."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add"):
        targets = [node.func.value]
    for target in targets:
        place = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name) and place.value.id == "self":
            return f"self.{place.attr}"
    return ""


def _is_tested_for_none(method: ast.FunctionDef, attribute: str) -> bool:
    """Whether it is set where it is None alone: a file that is opened late."""
    return any(
        isinstance(node, ast.Compare) and ast.unparse(node) == f"{attribute} is None" for node in ast.walk(method)
    )
