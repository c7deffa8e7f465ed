"""Samples behind which a collate function puts as much as each is shorter than the longest: `x + [PAD] * (longest -
len(x))`, `F.pad(x, (0, longest - len(x)))`, `torch.cat([x, torch.zeros(longest - len(x))])`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..script import Script


@dataclass(frozen=True)
class Missing:
    """How much shorter a sample is than the longest; the dimension that is measured, where that is seen."""

    dimension: int | None = None


@dataclass(frozen=True)
class Behind:
    """What is put behind a sample to make it as long as the longest, along a dimension."""

    value: str
    dimension: int = 0


@dataclass(frozen=True)
class Lengthened:
    """A sample with that behind it; of_all: a list of these."""

    value: str
    dimension: int = 0
    of_all: bool = False


FULL_OF = {"torch.zeros": "0", "torch.ones": "1", "numpy.zeros": "0", "numpy.ones": "1"}
FILLED = frozenset({"torch.full", "numpy.full"})
_LARGEST = frozenset({"max", "numpy.max", "numpy.amax"})


def takes_largest(name: str) -> bool:
    """Whether a function takes the largest of a list of numbers."""
    return name in _LARGEST


def measured(node: ast.expr) -> int | None:
    """The dimension whose length an expression asks for: `len(x)`, `x.size(1)`, `x.shape[0]`; None for others."""
    at: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        at = node.args[0] if len(node.args) == 1 and not node.keywords else None
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        at = node.slice
    known = isinstance(at, ast.Constant) and isinstance(at.value, int)
    return at.value if known else None  # type: ignore[union-attr]


def padded_dimension(sizes: ast.expr, missing: Sequence[object]) -> int | None:
    """The dimension of a sample behind which `F.pad(x, sizes)` puts something, and nothing else; None for others.

    Args: the sizes; what is known of each of them.
    """
    if not isinstance(sizes, ast.Tuple | ast.List) or not missing or len(sizes.elts) % 2:
        return None
    last = missing[-1]
    others = all(isinstance(each, ast.Constant) and each.value == 0 for each in sizes.elts[:-1])
    # The sizes begin with those of the last dimension: it is the one that was measured
    return last.dimension if others and isinstance(last, Missing) else None


def is_measured_there(script: Script, call: ast.Call, size: ast.expr) -> bool:
    """Whether what `F.pad(x, (0, longest - len(x)))` measures is what the longest of all is asked of: it would cut
    other samples that are longer, by what is the longest on a rank."""
    around = next((each for each in script.ancestors(call) if isinstance(each, ast.For | ast.ListComp)), None)
    size = _value_of(script, size)
    if around is None or not isinstance(size, ast.BinOp):
        return False
    loop = around if isinstance(around, ast.For) else around.generators[0]
    listed = _listed(script, size.left)
    own = _length(size.right, _places(loop.target), script)
    if not own or not own.startswith(f"{_length(call.args[0], _places(loop.target), script)}.shape["):
        return False
    if isinstance(listed, ast.ListComp | ast.GeneratorExp):
        part = listed.generators[0]
        same = ast.unparse(part.iter) == ast.unparse(loop.iter)
        return same and _length(listed.elt, _places(part.target), script) == own
    mapped = isinstance(listed, ast.Call) and [ast.unparse(each) for each in listed.args]
    return mapped == ["len", ast.unparse(loop.iter)] and own == "_.shape[0]"


def _value_of(script: Script, node: ast.expr, depth: int = 3) -> ast.expr:
    """What a name stands for that its function gives a value once."""
    if not isinstance(node, ast.Name) or not depth:
        return node
    scope = script.scope(node)
    stores = [each for each in script.find(ast.Name) if each.id == node.id and not isinstance(each.ctx, ast.Load)]
    stores = [each for each in stores if script.scope(each) is scope]
    statement = script.parents[stores[0]] if len(stores) == 1 else None
    assigned = isinstance(statement, ast.Assign) and statement.targets == stores
    return _value_of(script, statement.value, depth - 1) if assigned else node  # type: ignore[union-attr]


def _listed(script: Script, node: ast.expr, depth: int = 8) -> ast.expr:
    """The list of numbers of which something is the largest: `int(torch.tensor(lengths).max())`, `min(max(n), 512)`."""
    node = _value_of(script, node)
    if isinstance(node, ast.ListComp | ast.GeneratorExp) or not isinstance(node, ast.Call) or not depth:
        return node
    if ast.unparse(node.func) == "map":
        return node
    parts = [each for each in node.args if not isinstance(each, ast.Constant)]
    if isinstance(node.func, ast.Attribute) and not parts:
        parts = [node.func.value]
    return _listed(script, parts[0], depth - 1) if len(parts) == 1 else node


def _places(target: ast.expr) -> dict[str, str]:
    """What the names that a loop gives a sample stand for: `x` for `_[0]` of `for x, y in batch`."""
    if isinstance(target, ast.Name):
        return {target.id: "_"}
    parts = target.elts if isinstance(target, ast.Tuple) else []
    return {each.id: f"_[{place}]" for place, each in enumerate(parts) if isinstance(each, ast.Name)}


def _length(node: ast.expr, names: Mapping[str, str], script: Script) -> str:
    """The code of a sample, or of the length of one, in the words of all loops: `_[0].shape[0]`."""
    node = copy.deepcopy(_value_of(script, node))
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            each.id = names.get(each.id, each.id)
    at = measured(node)
    if at is None:
        return ast.unparse(node)
    owner = node.args[0] if isinstance(node, ast.Call) and at == 0 and node.args and _is_len(node) else None
    if owner is None:
        owner = node.func.value if isinstance(node, ast.Call) else node.value.value  # type: ignore[attr-defined]
    return f"{ast.unparse(owner)}.shape[{at}]"


def _is_len(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name)
