"""Commands that are asked for what they print, and write nothing: `subprocess.run(["git", "rev-parse", "HEAD"], …)`."""

from __future__ import annotations

import ast
import shlex

from .script import Script

_RUNS = frozenset({"subprocess.run", "subprocess.Popen"})
_OF_HISTORY = frozenset({"rev-parse", "log", "describe", "show"})  # whose answer is the same for all ranks
_OF_SHELLS = frozenset(";|&<>$`\n")


def only_asks(script: Script, call: ast.Call) -> bool:
    """Whether a call runs git, to be told of what was committed: it is written out, and its output is caught."""
    if script.qualified(call.func) not in _RUNS or not call.args or any(word.arg is None for word in call.keywords):
        return False
    words = {word.arg: word.value for word in call.keywords}
    caught = words.get("capture_output")
    is_caught = isinstance(caught, ast.Constant) and caught.value is True
    if not is_caught and script.qualified(words.get("stdout", ast.Constant(None))) != "subprocess.PIPE":
        return False
    given = _written(call.args[0])
    if given[:2] == ["git", "-C"]:
        given = [given[0], *given[3:]]  # where the repository is, be it known or not
    return len(given) > 1 and given[0] == "git" and given[1] in _OF_HISTORY and all(map(_is_plain, given[2:]))


def _written(node: ast.expr) -> list[str]:
    """The words of a command; "" for one that is not written out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return [] if _OF_SHELLS & {*node.value} else shlex.split(node.value)
        except ValueError:  # a quotation without an end
            return []
    if not isinstance(node, ast.List | ast.Tuple):
        return []
    return [str(each.value) if isinstance(each, ast.Constant) else "" for each in node.elts]


def _is_plain(word: str) -> bool:
    return word != "" and not word.startswith("--output") and not _OF_SHELLS & {*word}
