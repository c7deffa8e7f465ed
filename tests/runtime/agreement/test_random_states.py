"""The global random number generators: read, written back, compared, kept."""

from __future__ import annotations

import random

import numpy as np
import torch
from ddpify_runtime.agreement import random_states


def draw() -> tuple[float, float, float]:
    return torch.rand(()).item(), random.random(), float(np.random.rand())


def test_states_are_put_back() -> None:
    states = random_states.read()
    first = draw()
    random_states.write(states)
    assert draw() == first


def test_a_key_compares_by_value_and_tells_who_drew() -> None:
    before, outside = random_states.key(), random_states.outside_of_torch()
    assert before == random_states.key()
    torch.rand(1)
    assert random_states.key() != before and random_states.outside_of_torch() == outside
    random.random()
    assert random_states.outside_of_torch() != outside


def test_generators_are_left_as_they_were() -> None:
    before = random_states.key()
    with random_states.kept():
        draw()
    assert random_states.key() == before


def test_an_object_may_hold_a_generator_of_its_own() -> None:
    class Data:
        def __init__(self, what: object) -> None:
            self.parts = [{"inner": what}]

    assert random_states.has_generator(Data(np.random.RandomState(0)))
    assert random_states.has_generator(torch.Generator())
    assert not random_states.has_generator(Data(3))
