"""Random numbers that are drawn on the way to a sample: by a data set, by its transforms, and by what these call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..called_modules import last_name
from ..effects import sample_code
from ..script import Script

_CHAINS = frozenset({"Compose", "OneOf", "SomeOf", "RandomApply", "RandomChoice", "RandomOrder"})
_TRANSFORMS = ("transform", "augment")  # how what holds a transform is called


def on_the_way_to_samples(scripts: Sequence[Script]) -> Iterator[tuple[Script, ast.Call]]:
    """The calls that are made for each sample, with their files; functions are known by their names."""
    functions: dict[str, list[tuple[Script, ast.AST]]] = {}
    for script in scripts:
        for function in script.find(ast.FunctionDef):
            functions.setdefault(function.name, []).append((script, function))
    transforms = {name for script in scripts for name in _transforms(script, _data_sets(scripts))}
    waiting: list[tuple[Script, ast.AST]] = [
        (script, each) for script in scripts for each in sample_code(script) if isinstance(each, ast.Call)
    ]
    for script in scripts:
        classes = (each for each in script.find(ast.ClassDef) if each.name in transforms)
        waiting += [(script, each) for cls in classes for each in cls.body if _is_called(each)]
    seen = {node for _, node in waiting}
    while waiting:
        script, node = waiting.pop()
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            yield script, call
            reached = [each for each in functions.get(last_name(call.func), ()) if each[1] not in seen]
            seen |= {function for _, function in reached}
            waiting += reached


def _is_called(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in ("__call__", "forward")


def _data_sets(scripts: Sequence[Script]) -> frozenset[str]:
    """The names of classes that give samples."""
    classes = [each for script in scripts for each in script.find(ast.ClassDef)]
    gives = (each for each in classes if any(getattr(part, "name", "") == "__getitem__" for part in each.body))
    return frozenset(each.name for each in gives)


def _transforms(script: Script, data_sets: frozenset[str]) -> Iterator[str]:
    """The names of the classes of which a file makes transforms of samples: those in `Compose([…])`, that a data set is
    given, or that are kept as `self.transform`; and all classes of a file that is called so, or has a Compose."""
    own = [each.name for each in script.find(ast.ClassDef)]
    if _holds_transform(script.path.stem) or not _CHAINS.isdisjoint(own):
        yield from own
    for call in script.find(ast.Call):
        name = last_name(call.func)
        for parent in (script.parents[call], *script.ancestors(call)):
            if isinstance(parent, ast.Call) and last_name(parent.func) in _CHAINS | data_sets:
                yield name
            if isinstance(parent, ast.keyword) and _holds_transform(parent.arg or ""):
                yield name
            if isinstance(parent, ast.Assign) and any(_holds_transform(last_name(each)) for each in parent.targets):
                yield name
            if isinstance(parent, ast.stmt):
                break


def _holds_transform(name: str) -> bool:
    return any(each in name.lower() for each in _TRANSFORMS)
