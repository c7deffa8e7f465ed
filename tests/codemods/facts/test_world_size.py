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
    assert [is_world_size(SCRIPT, spawn, value) for value in spawn.given] == [True, False]


def test_a_constant_is_the_number_by_what_the_function_does_with_it() -> None:
    """Whatever the parameters are called: two steps on two processes are not the processes."""
    script = script_of("""
import torch.distributed as dist
import torch.multiprocessing as mp
def setup(rank, many):
    dist.init_process_group("gloo", rank=rank, world_size=many)
def worker(rank, size, many):
    setup(rank, many)
    for step in range(size):
        pass
mp.spawn(worker, args=(2, 2), nprocs=2)
""")
    (spawn,) = spawns(script)
    assert [is_world_size(script, spawn, value) for value in spawn.given] == [False, True]


def test_the_parameter_that_carries_it() -> None:
    assert [(function.name, name) for function, name in parameters_of_world_size(SCRIPT)] == [("worker", "size")]
    assert parameters(next(SCRIPT.find(ast.FunctionDef))) == ["rank", "size", "rate"]
