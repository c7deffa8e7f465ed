"""Metrics of torchmetrics, which sum over all processes by themselves: where they are made, and where called."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from .called_modules import last_name
from .script import Script

# They hold metrics, and take no `sync_on_compute` of their own.
_HOLDERS = frozenset({"MetricCollection", "FeatureShare", "CompositionalMetric", "MetricTracker", "Running"})
_HOLDERS |= {"ClasswiseWrapper", "MultitaskWrapper", "MultioutputWrapper"}
_SAME = frozenset({"to", "cpu", "cuda", "clone"})


def makes_metric(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a metric that may be told not to sum over processes."""
    name = script.qualified(call.func)
    return _is_class(name) and name.rpartition(".")[2] not in _HOLDERS


def derives_from_metric(script: Script, node: ast.ClassDef) -> bool:
    """Whether a class of the program is such a metric."""
    return any(_is_class(script.qualified(base)) for base in node.bases)


@lru_cache(maxsize=4)
def calls_of_metrics(scripts: tuple[Script, ...]) -> tuple[list[ast.Call], bool]:
    """The calls of a program that may be those of a metric for the value of a batch, `accuracy(out, y)`, and whether it
    updates any in another way. Metrics are known by the names that they have anywhere."""
    names = _names(scripts)
    calls: list[ast.Call] = []
    others = False
    for script in scripts:
        for call in script.find(ast.Call):
            called = call.func.value if isinstance(call.func, ast.Subscript) else call.func
            if last_name(called) in names:
                alone = isinstance(script.parents[call], ast.Expr)
                others |= alone
                calls += [] if alone else [call]
            elif isinstance(call.func, ast.Attribute) and call.func.attr == "update":
                others |= bool(_last_names([call.func.value]) & names)
    return calls, others


def _is_class(name: str) -> bool:
    return name.startswith("torchmetrics.") and name.rpartition(".")[2][:1].isupper() and ".functional." not in name


def _names(scripts: Sequence[Script]) -> set[str]:
    """The last parts of the names of metrics, and of what holds them."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    for script in scripts:
        for function in script.find(ast.FunctionDef):
            functions.setdefault(function.name, []).append(function)
            owner = script.parents[function]
            if function.name == "__init__" and isinstance(owner, ast.ClassDef):
                functions.setdefault(owner.name, []).append(function)
    given = [(script, *each) for script in scripts for each in _given(script, functions)]
    names: set[str] = set()
    size = -1
    while size != len(names):
        size = len(names)
        for script, targets, values in given:
            if any(_is_metric(script, value, names) for value in values):
                names |= _last_names(targets)
    return names


def _given(
    script: Script, functions: Mapping[str, list[ast.FunctionDef]]
) -> Iterator[tuple[list[ast.expr], list[ast.expr]]]:
    """What gets a name, and what it is the name of. functions: those of the program, by their names."""
    for node in script.find(ast.Assign, ast.AnnAssign, ast.For, ast.comprehension, ast.Call):
        if isinstance(node, ast.Assign):
            yield node.targets, [node.value]
        elif isinstance(node, ast.AnnAssign):
            yield [node.target], [node.value] if node.value is not None else []
        elif isinstance(node, ast.For | ast.comprehension):
            yield [node.target], [*_parts(node.iter)]
        elif isinstance(node, ast.Call):
            for function in functions.get(last_name(node.func), ()):
                parameters = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
                by_place = zip(parameters, node.args, strict=False)
                by_name = ((word.arg, word.value) for word in node.keywords if word.arg in parameters)
                for name, value in (*by_place, *by_name):
                    yield [ast.Name(str(name))], [value]


def _is_metric(script: Script, node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Call):
        if makes_metric(script, node) or _is_class(script.qualified(node.func)):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            return _is_metric(script, node.func.value, names)
        return any(_is_metric(script, each, names) for each in node.args if isinstance(each, ast.List | ast.Dict))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_is_metric(script, each, names) for each in node.elts)
    if isinstance(node, ast.Dict):
        return any(_is_metric(script, each, names) for each in node.values)
    if isinstance(node, ast.Subscript):
        return _is_metric(script, node.value, names)
    return isinstance(node, ast.Name | ast.Attribute) and last_name(node) in names


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """What a loop may run over: itself, and what `zip`, `enumerate` and `.items()` are given."""
    yield node
    if isinstance(node, ast.Call):
        yield from node.args
        if isinstance(node.func, ast.Attribute):
            yield node.func.value


def _last_names(nodes: Iterable[ast.expr]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Tuple | ast.List):
            found |= _last_names(node.elts)
        elif isinstance(node, ast.Subscript):
            found |= _last_names([node.value])
        elif isinstance(node, ast.Name | ast.Attribute):
            found.add(last_name(node))
    return found
