"""Calls of modules, and backward passes."""

from __future__ import annotations

import ast

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons


def test_a_call_of_the_model_is_known_with_its_model() -> None:
    found = followed(TRAINING).found
    assert [ast.unparse(call) for call in found.called_models] == ["model(x)"]


def test_a_loss_that_is_a_sum_is_scaled() -> None:
    assert reasons(TRAINING.replace("model(x), y)", "model(x), y, reduction='sum')")) == []


def test_a_loss_over_pairs_of_samples_is_a_problem() -> None:
    assert reasons(TRAINING.replace("F.cross_entropy(model(x), y)", "(model(x) @ model(x).T).exp().mean()"))
