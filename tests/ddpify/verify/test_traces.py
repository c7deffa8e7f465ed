"""Distances between recorded tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ddpify.verify.traces import distance, first_far, ratio, same_trace


def trace(*values: float) -> tuple[np.ndarray, float, tuple[int, ...]]:
    array = np.array(values, dtype=np.float32)
    return array, float(np.linalg.norm(array)), ()


def test_distances_are_relative_to_the_original() -> None:
    assert distance([trace(3, 4)], [trace(3, 4)]) == 0
    assert distance([trace(3, 9)], [trace(3, 4)]) == pytest.approx(1.0)
    assert distance([trace(1, 2)], [trace(1, 2, 3)]) == math.inf
    assert distance([trace(1)], [trace(0)]) == math.inf


def test_an_absent_gradient_counts_as_zero() -> None:
    assert distance([None, trace(3, 4)], [None, trace(3, 4)]) == 0
    assert distance([None], [trace(3, 4)]) == pytest.approx(1.0)


def test_nan_and_infinity_are_equal_to_themselves() -> None:
    assert distance([trace(math.nan, math.inf, 1)], [trace(math.nan, math.inf, 1)]) == 0


def test_the_first_tensor_that_is_far() -> None:
    place, far = first_far([trace(1), trace(2), trace(9)], [trace(1), trace(2), trace(3)], 1e-6)
    assert place == 2 and far == pytest.approx(2.0)
    assert first_far([trace(1)], [trace(1)], 1e-6)[0] == -1


def test_gradients_that_are_a_multiple() -> None:
    factor, rest = ratio([trace(2, 4)], [trace(1, 2)])
    assert factor == pytest.approx(2.0) and rest == pytest.approx(0.0, abs=1e-6)


def test_traces_of_the_same_bits() -> None:
    assert same_trace(trace(1, 2), trace(1, 2)) and not same_trace(trace(1, 2), trace(1, 2.0000002))
    assert same_trace(None, None) and not same_trace(None, trace(1))
