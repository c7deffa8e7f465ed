"""How many dimensions the tensors of a batch have: one more than those of a sample, where its data set shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from ..array_calls import Dimensions
from ..array_dimensions import ArrayDimensions
from ..origins import sources
from ..script import KEPT, Script

# By its place or key in a batch; None for a batch that is one tensor.
Parts: TypeAlias = "tuple[tuple[int | str | None, int], ...]"

_LABELLED = frozenset(
    {"MNIST", "FashionMNIST", "KMNIST", "EMNIST", "CIFAR10", "CIFAR100", "ImageFolder", "SVHN", "STL10", "FakeData"}
)
_DEPTH = 6


@lru_cache(maxsize=16 * KEPT)
def dimensions_of_batches(call: ast.Call, script: Script, scripts: tuple[Script, ...]) -> Parts:
    """How many dimensions the tensors of a loader's batches have, if it collates its samples as torch does."""
    words = {word.arg: word.value for word in call.keywords}
    given = words.get("dataset") or next(iter(call.args), None)
    sizes = words.get("batch_size")
    if given is None or {None, "collate_fn"} & words.keys() or (sizes is not None and ast.unparse(sizes) == "None"):
        return ()
    return _of_data(script, given, scripts, _DEPTH)


def _of_data(script: Script, node: ast.expr, scripts: Sequence[Script], depth: int) -> Parts:
    """The same of a data set, as an expression makes it."""
    if depth <= 0:
        return ()
    if isinstance(node, ast.NamedExpr):
        return _of_data(script, node.value, scripts, depth)
    if isinstance(node, ast.Call):
        name = script.qualified(node.func)
        last = name.rpartition(".")[2]
        of_torch = name.startswith("torch.")
        if last == "TensorDataset" and of_torch:
            arrays = ArrayDimensions(script)
            return _parts(tuple(arrays.of(each) for each in node.args), 0)
        if last in ("Subset", "random_split") and of_torch and node.args:
            return _of_data(script, node.args[0], scripts, depth - 1)
        if last == "list" and node.args and ast.unparse(node.args[0]).startswith("zip("):
            assert isinstance(node.args[0], ast.Call)
            return _parts(tuple(ArrayDimensions(script).of(each) for each in node.args[0].args), 0)
        if name.startswith("torchvision.datasets.") and last in _LABELLED:
            return ((1, 1),)
        classes = [(each, cls) for each in scripts for cls in each.find(ast.ClassDef) if cls.name == last]
        if len(classes) == 1:
            return _of_class(*classes[0])
    if isinstance(node, ast.ListComp):
        elements = node.elt.elts if isinstance(node.elt, ast.Tuple) else [node.elt]
        each_of = tuple(ArrayDimensions(script).of(each) for each in elements)
        return _parts(each_of if isinstance(node.elt, ast.Tuple) else each_of[0], 1)
    found = {_of_data(script, each, scripts, depth - 1) for each in sources(script, node)}
    return found.pop() if len(found) == 1 else ()


def _of_class(script: Script, cls: ast.ClassDef) -> Parts:
    """The same of the data set that a class is: what its `__getitem__` returns."""
    method = next((each for each in cls.body if _takes_item(each)), None)
    if not isinstance(method, ast.FunctionDef) or len(method.args.args) != 2:
        return ()
    found = set()
    for returned in _returns(script, method):
        arrays = ArrayDimensions(script, {(method, method.args.args[1].arg): 0})
        if isinstance(returned, ast.Tuple):
            found.add(_parts(tuple(arrays.of(each) for each in returned.elts), 1))
        elif isinstance(returned, ast.Dict):
            keys = [each.value if isinstance(each, ast.Constant) else None for each in returned.keys]
            known = zip(keys, (arrays.of(each) for each in returned.values), strict=True)
            found.add(
                tuple((key, number + 1) for key, number in known if isinstance(number, int) and isinstance(key, str))
            )
        else:
            found.add(_parts(arrays.of(returned), 1))
    return found.pop() if len(found) == 1 else ()


def _takes_item(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__getitem__"


def _returns(script: Script, method: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a method returns; of a name what it is given, if that is one tuple or dict."""
    for node in ast.walk(method):
        if isinstance(node, ast.Return) and node.value is not None and script.scope(node) is method:
            made = sources(script, node.value) if isinstance(node.value, ast.Name) else []
            plain = len(made) == 1 and isinstance(made[0], ast.Tuple | ast.Dict)
            yield made[0] if plain else node.value


def _parts(dimensions: Dimensions, more: int) -> Parts:
    """Tensors of a batch by their places. more: how many dimensions one gets when samples are stacked."""
    if isinstance(dimensions, tuple):
        return tuple((at, number + more) for at, number in enumerate(dimensions) if isinstance(number, int))
    return ((None, dimensions + more),) if isinstance(dimensions, int) else ()
