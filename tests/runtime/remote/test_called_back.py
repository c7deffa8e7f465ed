"""Functions of the script that a library calls on rank 0: every rank runs them."""

from __future__ import annotations

import functools
import json
from typing import Any

import torch.distributed as dist
from ddpify_runtime.remote.called_back import drive, functions
from ddpify_runtime.remote.values import next_key
from torch import nn

from tests.runtime.processes import run


def objective(x: int) -> int:
    return x * 10


class Callback:
    def __call__(self) -> None: ...


def test_functions_of_the_script_are_found_among_arguments() -> None:
    callback, bound = Callback(), functools.partial(objective, 3)
    given = (objective, [bound, 3], json.dumps, nn.Linear(1, 1), "text")
    assert functions(given, {"callback": callback}) == [objective, bound, callback]
    assert functions(given, {"callback": callback}, objects=False) == [objective, bound]


def search() -> tuple[list[int], Any]:
    calls: list[int] = []

    def called(x: int) -> int:
        calls.append(x)
        return objective(x)

    def library(function: Any, tries: int) -> int:
        return max(int(function(number)) for number in range(tries))

    def packed(value: Any) -> tuple[Any, Any]:
        return value, value

    found = drive(next_key("search"), dist.get_rank() == 0, library, (called, 3), {}, packed)
    return calls, found


def test_every_rank_runs_what_the_library_calls() -> None:
    assert run(2, search) == [([0, 1, 2], 20)] * 2
