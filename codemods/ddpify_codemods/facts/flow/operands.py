"""What an operation computes with, as it is written down."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..origins import sources
from ..script import Script
from .layout import axis
from .values import LOCAL_ROWS, SAME, Value

_NUMBERS = frozenset({"std", "var", "max", "min", "norm", "median", "amax", "amin", "prod"})
_WEIGHED = frozenset({"linear", "embedding"} | {f"conv{of}{n}d" for of in ("", "_transpose") for n in (1, 2, 3)})
_LAY_OUT = frozenset({"t", "transpose", "unsqueeze", "contiguous"})


def operands(node: ast.expr) -> list[ast.expr]:
    """What a call, an arithmetic operation, a comparison or a subscript computes with; a name itself."""
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        given = [*node.args, *(word.value for word in node.keywords)]
        return [*owner, *(each.value if isinstance(each, ast.Starred) else each for each in given)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if not isinstance(node, ast.Subscript):
        return [node] if isinstance(node, ast.Name) else []
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    bounds = [[each.lower, each.upper, each.step] if isinstance(each, ast.Slice) else [each] for each in index]
    return [node.value, *(each for several in bounds for each in several if each is not None)]


def laid_out(node: ast.expr) -> ast.expr:
    """What a tensor is whose dimensions are exchanged, or get one more: z of `z.t().contiguous()`, `z.T`,
    `torch.transpose(z, 0, 1)`, `z.unsqueeze(1)`, `z[None]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LAY_OUT:
        is_function = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        return laid_out(node.args[0] if is_function and node.args else node.func.value)
    if isinstance(node, ast.Subscript) and dimensions_added(node):
        return laid_out(node.value)
    return laid_out(node.value) if isinstance(node, ast.Attribute) and node.attr in ("T", "mT") else node


def are_pairs(script: Script, first: ast.expr, second: ast.expr) -> bool:
    """Whether a tensor meets itself with a dimension more, so that each two of its rows meet: `y[:, None] == y`."""
    one, other = _with_dimensions(script, first), _with_dimensions(script, second)
    return ast.unparse(one[0]) == ast.unparse(other[0]) and one[1] != other[1]


def adds_dimension(script: Script, node: ast.expr) -> bool:
    """Whether a tensor is given a dimension, here or where it got its name."""
    return _with_dimensions(script, node)[1] > 0


def _with_dimensions(script: Script, node: ast.expr, seen: tuple[ast.expr, ...] = ()) -> tuple[ast.expr, int]:
    """A tensor, and how many dimensions it is given, here or where it got its name.

    seen: what has been gone back to, which the name may have been given to again: `z = z.unsqueeze(1)`.
    """
    made = sources(script, node) if isinstance(node, ast.Name) else []
    written = made[0] if len(made) == 1 and dimensions_added(made[0]) and made[0] not in seen else node
    added = dimensions_added(written)
    if not added:
        return node, 0
    part = written.value if isinstance(written, ast.Subscript) else written.func.value  # type: ignore[attr-defined]
    inner, before = _with_dimensions(script, part, (*seen, written))
    return inner, before + added


def dimensions_added(node: ast.expr) -> int:
    """How many dimensions a tensor is given by `z.unsqueeze(1)`, `z[:, None]`, `z[None]`."""
    if isinstance(node, ast.Call):
        return int(isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze")
    if not isinstance(node, ast.Subscript):
        return 0
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    written = [ast.unparse(part) for part in parts]
    return written.count("None") if {*written} <= {":", "None", "..."} else 0


def measures(node: ast.expr) -> bool:
    """Whether an operation makes one number of all samples, or one for each feature: `x.std()`, `torch.var(x, 0)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_function = isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "np", "numpy")
    given = [*node.args[is_function:], *(word.value for word in node.keywords if word.arg in ("dim", "axis"))]
    dims = [each.value if isinstance(each, ast.Constant) else None for each in given]
    others = [word.arg for word in node.keywords if word.arg not in ("dim", "axis", "unbiased", "correction")]
    name = node.func.attr
    return not others and (name in _NUMBERS if not dims else name in ("std", "var") and dims == [0])


def says_places(node: ast.expr, script: Script) -> bool:
    """Whether a number says which samples of a batch are meant, of which a rank has its own: `range(len(x) - 1)`."""
    parent = script.parents[node]
    name = ast.unparse(parent.func).rpartition(".")[2] if isinstance(parent, ast.Call) else ""
    return name in ("range", "arange")


def weighs_by_samples(name: str, args: Sequence[Value], node: ast.Call) -> bool:
    """Whether a function computes with samples as the rows of its weights, each with all others: `F.linear(x, x)`."""
    weights = args[1] if name in _WEIGHED and len(args) > 1 else SAME
    grouped = any(word.arg == "groups" for word in node.keywords)  # each sample has weights of its own
    of_samples = weights.kind in LOCAL_ROWS and axis(weights.kind) == 0 and not weights.merged
    return of_samples and not grouped and args[0].kind in LOCAL_ROWS
