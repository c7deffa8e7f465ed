"""What is known of texts that a program writes down, such as the names of its networks: `name.startswith("resnet")`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .values import Value

_ASKS = frozenset({"startswith", "endswith", "isdigit", "islower", "isupper"})
_MAKES = frozenset({"lower", "upper", "strip", "replace", "removeprefix", "removesuffix"})


def of_text(name: str, owner: Value, args: Sequence[Value], has_keywords: bool) -> Value | None:
    """What a method of a text gives; None where the text, or an argument, is not known."""
    texts = [owner.constant, *(each.constant for each in args)]
    if name not in _ASKS | _MAKES or has_keywords or not all(isinstance(each, str) for each in texts):
        return None
    try:
        return Value(constant=getattr(texts[0], name)(*texts[1:]), host=True)
    except TypeError:  # as it will when it runs
        return None


def is_part(node: ast.Compare, values: Sequence[Value]) -> Value | None:
    """Whether a text is part of another one, `"plus" in name`; None for what is not known, and other comparisons."""
    part, text = (values[0].constant, values[1].constant) if len(values) == 2 else (None, None)
    if not isinstance(node.ops[0], ast.In | ast.NotIn) or not isinstance(part, str) or not isinstance(text, str):
        return None
    return Value(constant=(part in text) == isinstance(node.ops[0], ast.In), host=True)
