"""Numbers that are drawn once for all samples, at both ends of their range."""

from __future__ import annotations

import random

import numpy as np
import pytest
from ddpify_runtime.trial.extreme_draws import EXTREMES, drawn_outside_of_torch


@pytest.mark.parametrize("extreme", EXTREMES)
def test_draws_at_one_end(extreme: float) -> None:
    with drawn_outside_of_torch(extreme):
        assert random.random() == np.random.rand() == extreme
        assert random.randint(3, 9) == (9 if extreme else 3)
        assert random.choice("abc") == ("c" if extreme else "a")
        assert np.random.randint(5) == (4 if extreme else 0)
        assert np.random.uniform(size=(2, 3)).shape == (2, 3)
        assert random.uniform(2.0, 4.0) == pytest.approx(4.0 if extreme else 2.0)


def test_draws_go_on_as_before() -> None:
    random.seed(3)
    first = random.random()
    with drawn_outside_of_torch(0.0):
        random.random()
    with drawn_outside_of_torch(None):
        second = random.random()
    random.seed(3)
    assert [random.random(), random.random()] == [first, second]
