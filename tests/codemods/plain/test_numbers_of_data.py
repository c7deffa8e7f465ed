"""Samples that are computed with a number of their batch, before any model sees them: it is that of all ranks."""

from __future__ import annotations

import pytest

from .test_followed import CE, plain, refusals, training

SOURCE = training()


def _with(line: str) -> str:
    return SOURCE.replace(f"loss = {CE}", f"x = {line}\n        loss = {CE}")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x - x.mean()", "x - mean_over_ranks(x.mean())"),
        ("(x - x.mean(0)) / x.std(0)", "(x - mean_over_ranks(x.mean(0))) / whole_batch(x).std(0)"),
        ("x / torch.std(x)", "x / torch.std(whole_batch(x))"),
        ("x / (x.max() + 1e-6)", "x / (whole_batch(x).max() + 1e-6)"),
        ("x - y.float().std()", "x - whole_batch(y.float()).std()"),
        ("x - x.mean(1, keepdim=True)", "x - x.mean(1, keepdim=True)"),
    ],
)
def test_a_number_of_the_batch(line: str, code: str) -> None:
    result = plain(_with(line))
    assert not refusals(result) and f"x = {code}\n" in result.code


@pytest.mark.parametrize(
    "line",
    [
        "x - x[torch.arange(len(x)) // 2]",
        "x - x[:4].mean()",
        "x / x.max(0)[0]",
        "x - x.sort(0)[0]",
        "x - x.quantile(0.5)",
        "x - model.weight.mean() * x.std()",
    ],
)
def test_what_is_no_number_of_the_batch_or_learned(line: str) -> None:
    assert refusals(plain(_with(line)))


@pytest.mark.parametrize("asked", ["x.requires_grad_()", "x.requires_grad = True"])
def test_gradients_of_samples_go_through_it(asked: str) -> None:
    source = _with("x - x.mean()").replace("x = x - ", f"{asked}\n        x = x - ")
    assert "x - mean_over_ranks(x.mean())" not in plain(source).code
