"""What the modules of torch.nn make of a batch."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.library_modules import of_library_module
from ddpify_codemods.facts.flow.values import Module, Value


def made(source: str, kind: str = "rows", dimensions: int | None = None) -> Value | None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    module = Module(call, f"torch.nn.{ast.unparse(call.func)}")
    words = {word.arg or "**": word.value for word in call.keywords}
    for key, node in (dict[int | str, ast.expr](enumerate(call.args)) | words).items():
        module.told[key] = Value(constant=None if isinstance(node, ast.Name) else ast.literal_eval(node))
    return of_library_module(module, [Value(kind, dimensions=dimensions)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "given", "kind"),
    [
        ("Linear(4, 3)", "rows", "rows"),
        ("Flatten()", "rows", "rows"),
        ("Flatten(0)", "rows_second", "rows_moved"),
        ("Softmax(dim=1)", "rows", "rows"),
        ("Softmax(dim=0)", "rows", "unknown"),
        ("Softmax(dim=-1)", "rows", "rows"),
        ("Softmax(dim=n)", "rows", "unknown"),
        ("Softmax(**n)", "rows", "unknown"),
        ("GLU()", "rows", "rows"),
        ("GLU(0)", "rows", "unknown"),
        ("Flatten(n)", "rows", "unknown"),
        ("TransformerEncoderLayer(8, 2, batch_first=True)", "rows", "rows"),
        ("TransformerEncoderLayer(8, 2)", "rows", "unknown"),
        ("TransformerEncoderLayer(8, 2)", "rows_second", "rows_second"),
    ],
)
def test_where_the_samples_are_afterwards(source: str, given: str, kind: str) -> None:
    found = made(source, given)
    assert found is not None and found.kind == kind


def test_recurrent_layers_take_time_first_unless_they_are_told() -> None:
    couples, divided = made("LSTM(4, 3)"), made("LSTM(4, 3, batch_first=True)")
    assert couples is not None and couples.kind == "unknown"
    assert divided is not None and divided.things


@pytest.mark.parametrize(
    "source",
    ["LSTM(4, 3, batch_first=True)", "MultiheadAttention(8, 2)", "TransformerEncoderLayer(8, 2, batch_first=True)"],
)
def test_a_matrix_is_one_sequence_to_layers_that_run_over_steps(source: str) -> None:
    found = made(source, dimensions=2)
    assert found is not None and found.kind == "unknown"


def test_other_modules_are_not_known() -> None:
    assert made("Sequential(a, b)") is None
    assert made("Linear(4, 3)", "same") is None
