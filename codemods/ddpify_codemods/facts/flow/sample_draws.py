"""Random numbers that are drawn on the way to a sample: by a data set, by its transforms, and by what these call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..called_modules import last_name
from ..effects import sample_code
from ..script import Script
from ..transforms import may_be_called_for_samples


def on_the_way_to_samples(scripts: Sequence[Script]) -> Iterator[tuple[Script, ast.Call]]:
    """The calls that are made for each sample, with their files; functions are known by their names."""
    functions: dict[str, list[tuple[Script, ast.AST]]] = {}
    for script in scripts:
        for function in script.find(ast.FunctionDef):
            functions.setdefault(function.name, []).append((script, function))
    waiting: list[tuple[Script, ast.AST]] = [
        (script, each) for script in scripts for each in sample_code(script) if isinstance(each, ast.Call)
    ]
    waiting += [(script, each) for script in scripts for each in may_be_called_for_samples(scripts, script)]
    seen = {node for _, node in waiting}
    while waiting:
        script, node = waiting.pop()
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            yield script, call
            reached = [each for each in functions.get(last_name(call.func), ()) if each[1] not in seen]
            seen |= {function for _, function in reached}
            waiting += reached
