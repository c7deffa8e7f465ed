"""Calls in f-strings, of whose parts Python 3.11 does not know the places: they are replaced as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .devices import source
from .script import Script


def with_calls_replaced(script: Script, text: ast.JoinedStr, said: Mapping[str, str]) -> str:
    """An f-string with other calls in it.

    Args: the file; the f-string; the source of each call, and what comes in its place.
    Returns its source; "" where nothing changes, or `{}` in it would stand for something else in a template.
    """
    before = code = source(script, text)
    quote = "'" if '"' in code[:4] else '"'
    for call, other in said.items():
        code = code.replace(call, other.replace('"', quote))
    return "" if code == before or "{}" in code else code
