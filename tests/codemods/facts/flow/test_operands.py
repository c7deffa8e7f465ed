"""What an operation computes with."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.operands import adds_dimension, laid_out, measures, operands

from tests.codemods.checks import script_of, sources_of


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("a + b", ["a", "b"]),
        ("f(a, *b, c=d)", ["a", "b", "d"]),
        ("a.f(b)", ["a", "b"]),
        ("a[b:c]", ["a", "b", "c"]),
        ("a < b", ["a", "b"]),
    ],
)
def test_operands(source: str, parts: list[str]) -> None:
    assert sources_of(operands(ast.parse(source, mode="eval").body)) == parts


@pytest.mark.parametrize(
    "source",
    [
        "z", "z.t()", "z.T", "z.unsqueeze(1)", "z.transpose(0, 1).unsqueeze(0)", "z.t().contiguous()",
        "torch.transpose(z, 0, 1)", "torch.t(z).contiguous()",
    ],
)  # fmt: skip
def test_a_tensor_with_other_dimensions(source: str) -> None:
    assert ast.unparse(laid_out(ast.parse(source, mode="eval").body)) == "z"


@pytest.mark.parametrize("source", ["z.mean()", "f(z)", "z.shape"])
def test_another_tensor(source: str) -> None:
    assert ast.unparse(laid_out(ast.parse(source, mode="eval").body)) == source


@pytest.mark.parametrize("source", ["x.std()", "torch.std(x)", "x.var(0)", "x.std(dim=0, unbiased=False)", "x.norm()"])
def test_a_number_of_all_samples(source: str) -> None:
    assert measures(ast.parse(source, mode="eval").body)


@pytest.mark.parametrize(
    "source", ["x.std(1)", "x.max(0)", "x[0]", "torch.std(x, n)", "x.norm(p=1)", "std(x)", "x.sort()"]
)
def test_another_operation(source: str) -> None:
    assert not measures(ast.parse(source, mode="eval").body)


@pytest.mark.parametrize(
    ("body", "adds"),
    [
        ("z = z.unsqueeze(1)", True),  # the name is that of what it is made of
        ("z = a[:, None]; a = z.unsqueeze(1)", True),
        ("a = z.unsqueeze(1)", False),
        ("z = z.float()", False),
    ],
)
def test_a_name_that_is_given_a_tensor_with_a_dimension_more(body: str, adds: bool) -> None:
    script = script_of(f"def step(z):\n    {body}\n    return z")
    node = next(each for each in script.find(ast.Return)).value
    assert node is not None
    assert adds_dimension(script, node) is adds
