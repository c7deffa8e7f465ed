"""Gradients of samples by torch.autograd.grad (L14)."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.input_gradients import gradients_of, of_scaled
from ddpify_codemods.facts.flow.values import Items, Value

ROWS = Value("rows")


@pytest.mark.parametrize(
    ("outputs", "weights", "kind"), [("sum", None, "rows"), ("mean", None, "scaled"), ("rows", ROWS, "rows")]
)
def test_what_differentiating_by_samples_gives(outputs: str, weights: Value | None, kind: str) -> None:
    found = gradients_of(Value(outputs), ROWS, weights, graph=True)  # type: ignore[arg-type]
    assert found is not None
    (items,) = found.only(Items)
    assert isinstance(items, Items) and [each.kind for each in items.all()] == [kind]


def test_gradients_of_other_things() -> None:
    assert gradients_of(Value("sum"), Value("same"), None, graph=True) is None


def test_of_a_gradient_of_a_mean_the_signs_are_known() -> None:
    scaled = Value("scaled")
    assert of_scaled("sign", scaled).kind == "rows" and of_scaled("clone", scaled).kind == "scaled"
    assert of_scaled("norm", scaled).kind == "unknown"
