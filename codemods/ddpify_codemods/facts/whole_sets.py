"""Loaders whose one batch is all of a data set: `DataLoader(data, batch_size=len(data))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .called_modules import last_name
from .flow.own_sizes import means_same
from .origins import assigned
from .script import Script


def is_whole_set(script: Script, size: ast.expr, dataset: ast.expr) -> bool:
    """Whether a batch size is how many samples a data set has, as its call says it, or a name that is set once."""
    loaded = list(_tensors(script, dataset))
    for number in _made_of(script, size):
        counted = _counted(script, number)
        if counted is None:
            continue
        here = number is size and script.statement(size) is script.statement(dataset)
        if here and ast.unparse(counted) == ast.unparse(dataset):
            return True
        return any(means_same(script, counted, each) for each in loaded)
    return False


def counts_samples(script: Script, size: ast.expr) -> bool:
    """Whether a number is how many of something there are."""
    return any(_counted(script, each) is not None for each in _made_of(script, size))


def _counted(script: Script, size: ast.expr) -> ast.expr | None:
    """What is counted: `data` of `len(data)`, `x.shape[0]` and `x.size(0)`."""
    if isinstance(size, ast.Call) and script.qualified(size.func) == "len" and len(size.args) == 1:
        return size.args[0]
    if isinstance(size, ast.Subscript) and isinstance(size.value, ast.Attribute) and ast.unparse(size.slice) == "0":
        return size.value.value if size.value.attr == "shape" else None
    if isinstance(size, ast.Call) and isinstance(size.func, ast.Attribute) and size.func.attr == "size":
        return size.func.value if [ast.unparse(each) for each in size.args] == ["0"] else None
    return None


def _tensors(script: Script, dataset: ast.expr) -> Iterator[ast.expr]:
    """What has as many rows as a data set has samples: itself, and the tensors of a TensorDataset."""
    for made in _made_of(script, dataset):
        yield made
        if isinstance(made, ast.Call) and last_name(made.func) == "TensorDataset":
            yield from made.args


def _made_of(script: Script, node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what it is the name of."""
    yield node
    values = assigned(script, node) if isinstance(node, ast.Name) else []
    yield from values if len(values) == 1 else []
