"""Runs a function in several real processes that form a gloo group, and gives back what each returned."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch._dynamo  # what optimizers import when first used: once here instead of in every fork (2 s)
import torch.distributed as dist

LIMIT = 120  # seconds until a hanging process is killed


def run(world_size: int, function: Callable[..., Any], *args: Any, port: int = 0) -> list[Any]:
    """`function(*args)` in `world_size` forked processes; their results by rank.

    Args:
        port: if given, the function forms the group itself, at this port, from torchrun's variables.

    Raises:
        AssertionError: a process raised or did not end; with its traceback.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(world_size)]
        processes = [
            context.Process(
                target=_work, args=(rank, world_size, port or f"{folder}/store", pipes[rank][1], function, args)
            )
            for rank in range(world_size)
        ]
        for process in processes:
            process.start()
        answers = [
            pickle.loads(receive.recv_bytes()) if receive.poll(LIMIT) else ("it did not end", None)
            for receive, _ in pipes
        ]
        for process in processes:
            process.join(5)
            process.kill()
    errors = [error for error, _ in answers if error]
    assert not errors, "\n".join(errors)
    return [result for _, result in answers]


def _work(
    rank: int,
    world_size: int,
    meeting: int | str,
    pipe: Connection,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    gc.freeze()  # leaving a group collects: it need not go through torch and all tests that pytest has collected
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(meeting)}
    os.environ.setdefault("DDPIFY_RANDOM", "original")
    with _Answer(rank) as answer:
        if world_size > 1 and isinstance(meeting, str):
            dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world_size)
            dist.barrier()  # one that returns at once must not leave while another still connects to it
        answer.content = "", function(*args)
    pipe.send_bytes(
        pickle.dumps(answer.content)
    )  # not send(): that would share the tensors' memory, which ends with us
    os._exit(0)


class _Answer:
    """Whatever is raised is the answer; a `try` here would be one of the script's to the runtime (remote/caught.py)."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.content: tuple[str, Any] = "", None

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> bool:
        if kind is not None:
            self.content = f"rank {self.rank}:\n{''.join(traceback.format_exception(kind, *error))}", None
        return True
