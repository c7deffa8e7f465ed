"""The number of processes that a spawning script hands to its functions."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.launch import spawns
from ddpify_codemods.facts.world_size import is_world_size, parameters, parameters_of_world_size

from tests.codemods.checks import script_of

SCRIPT = script_of("""
import torch.multiprocessing as mp
def worker(rank, size, rate):
    init(size)
size = 2
mp.spawn(worker, args=(size, 0.1), nprocs=size)
""")


def test_the_element_that_is_the_number_of_processes() -> None:
    (spawn,) = spawns(SCRIPT)
    assert [is_world_size(spawn, value) for value in spawn.given] == [True, False]


def test_the_parameter_that_carries_it() -> None:
    assert [(function.name, name) for function, name in parameters_of_world_size(SCRIPT)] == [("worker", "size")]
    assert parameters(next(SCRIPT.find(ast.FunctionDef))) == ["rank", "size", "rate"]
