"""How an eager DDP script gets its processes."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.launch import is_before_launch, shared_names, spawns, starts_processes, torchrun_guard

from tests.codemods.checks import node_of, script_of

SPAWNS = script_of("""
import torch.multiprocessing as mp
def worker(rank, size):
    train()
def launch(size):
    mp.spawn(worker, args=(size,), nprocs=size)
def main():
    prepare()
    launch(2)
if __name__ == "__main__":
    main()
""")
TORCHRUN = script_of("""
def train():
    print(rate)
if __name__ == "__main__":
    rate, other = 0.1, 1
    train()
""")


def test_a_spawn_and_what_it_starts() -> None:
    (spawn,) = spawns(SPAWNS)
    assert [worker.name for worker in spawn.workers] == ["worker"] and spawn.plain
    assert [ast.unparse(value) for value in spawn.given] == ["size"]
    assert spawn.processes is not None and ast.unparse(spawn.processes) == "size"
    assert starts_processes(SPAWNS) == {"launch", "main"}


def test_what_runs_before_there_are_processes() -> None:
    assert is_before_launch(SPAWNS, node_of(SPAWNS, "prepare()"))
    assert not is_before_launch(SPAWNS, node_of(SPAWNS, "train()"))


def test_the_block_that_torchrun_runs() -> None:
    guard = torchrun_guard(TORCHRUN)
    assert guard is not None and shared_names(TORCHRUN, guard) == {"rate"}
    assert torchrun_guard(SPAWNS) is None
