"""What is sent from rank 0 to the others, and what stays an object of its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ddpify_runtime.remote import values

from tests.runtime.processes import run


class Live:
    pass


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} {two}")


@pytest.mark.parametrize("data", [3, "text", None, [1, {"a": (2.5, b"c")}], torch.ones(2), np.ones(2), np.float32(1)])
def test_data_is_as_good_as_here_when_it_is_copied(data: object) -> None:
    assert values.is_data(data)


@pytest.mark.parametrize("thing", [Live(), [Live()], {"a": Live()}, iter([])])
def test_live_objects_stay_where_they_are(thing: object) -> None:
    assert not values.is_data(thing)


def test_an_error_that_cannot_travel_says_the_same() -> None:
    error = ValueError("x")
    assert values.travelling(error) is error
    assert str(values.travelling(Unpicklable(1, 2))) == repr(Unpicklable(1, 2))


def asked(fails: bool) -> str:
    import torch.distributed as dist

    def function() -> tuple[str, str]:
        if fails:
            raise ValueError("no")
        return "here", "there"

    try:
        return str(values.from_rank_zero(values.next_key("name"), dist.get_rank() == 0, function))
    except ValueError as error:
        return f"raised {error}"


def test_every_rank_has_what_rank_0_made_or_its_error() -> None:
    assert run(3, asked, False) == ["here", "there", "there"]
    assert run(3, asked, True) == ["raised no"] * 3
