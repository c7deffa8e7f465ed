"""The option without which a script stays on the CPU: `parser.add_argument("--cuda", action="store_true")`."""

from __future__ import annotations

import ast
import re

_OPTION = re.compile(r"--(use[-_])?(cuda|gpu)")


def gpu_option(text: str) -> str:
    """The option of a script's command line without which it stays on the CPU; "" for none.

    Args:
        text: its source, which is valid.
    """
    if "store_true" not in text:
        return ""
    for call in (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)):
        named = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        words = {word.arg: word.value for word in call.keywords}
        action = words.get("action")
        asks = isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        if asks and isinstance(action, ast.Constant) and action.value == "store_true" and "default" not in words:
            found = next((name for name in named if _OPTION.fullmatch(name)), "")
            if found:
                return found
    return ""
