"""Dimensions that are counted by how many a tensor has."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.counted_dimensions import counted, listed_dimensions, made_by
from ddpify_codemods.facts.flow.values import SAME, Items, Value, of

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("text", "dimensions", "expected"),
    [
        ("x.dim() - 2", None, -2),
        ("x.ndim - 1", None, -1),
        ("len(x.shape) - 2", None, -2),
        ("len(x.size()) - 2", None, -2),
        ("tuple(range(1, x.dim()))", 4, (1, 2, 3)),
        ("list(range(1, len(x.shape)))", 2, (1,)),
        ("range(2, x.ndim)", None, (2,)),
        ("tuple(range(0, x.dim()))", 3, "unknown"),
        ("tuple(range(x.dim()))", 3, "unknown"),
        ("tuple(range(1, x.dim()))", 1, "unknown"),
        ("y.dim() - 1", 3, 2),
        ("y.dim() - 1", None, "unknown"),
        ("tuple(range(1, y.dim()))", 4, (1, 2, 3)),
        ("tuple(range(1, y.dim()))", None, "unknown"),
        ("x.dim() - n", 3, "unknown"),
        ("n - 2", 3, "unknown"),
        ("min(0, 1)", 3, "unknown"),
        ("(1, 2)", None, (1, 2)),
        ("[1, n]", 3, "unknown"),
        ("list(range(1, 3))", None, (1, 2)),
    ],
)
def test_counts(text: str, dimensions: int | None, expected: object) -> None:
    def value(node: ast.expr) -> Value:
        constant = node.value if isinstance(node, ast.Constant) else None
        return Value(constant=constant, dimensions=dimensions)

    node, call = ast.parse(text, mode="eval").body, ast.parse("x.sum()", mode="eval").body
    assert isinstance(call, ast.Call)
    assert counted(node, call, value) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("x.softmax(x.dim() - 1)", -1),
        ("F.softmax(x, x.dim() - 1)", -1),
        ("softmax(x, x.dim() - 1)", -1),
        ("F.softmax(input=x, dim=x.dim() - 1)", -1),
        ("h.softmax(x.dim() - 1)", "unknown"),
        ("torch.gather(h, index=x, dim=x.dim() - 1)", "unknown"),
        ("x.unsqueeze(x.dim() - 1)", "unknown"),
    ],
)
def test_counts_for_the_tensor_that_is_computed_with(call: str, expected: object) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    given = [*node.args, *(word.value for word in node.keywords)][-1]
    assert counted(given, node, lambda part: Value(constant=getattr(part, "value", None))) == expected


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("dims = [1, 2]", "[1, 2]"),
        ("dims = [1, 2]; dims.append(0)", "dims"),
        ("dims = [1, 2]; dims[0] = 0", "dims"),
        ("dims = [1]; dims = [0]", "dims"),
        ("dims = [1]; dims += [0]", "dims"),
        ("pass", "dims"),
        ("x = [x.sum(dims) for dims in (1, 2)][0]", "dims"),
    ],
)
def test_what_a_name_is_made_by(body: str, made: str) -> None:
    """What one caller hands over is not what another one does."""
    given = "" if "dims" in body else ", dims"
    script = script_of(f"def f(x{given}):\n    {body}\n    return x.sum(dims)\nf(y, [1, 2])\n")
    name = [each for each in script.find(ast.Name) if each.id == "dims" and isinstance(each.ctx, ast.Load)][-1]
    assert ast.unparse(made_by(script, name)) == made


def test_what_a_list_holds() -> None:
    one, other = Value(constant=1), Value(constant=2)
    assert listed_dimensions(of(Items("tuple", {0: one, 1: other}))) == (1, 2)
    assert listed_dimensions(of(Items("tuple", {0: one, 1: SAME}))) is None
    assert listed_dimensions(of(Items("list", {0: one}, rest=other))) is None
    assert listed_dimensions(SAME) is None
