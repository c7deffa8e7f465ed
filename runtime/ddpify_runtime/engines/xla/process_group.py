"""One process group for tensors on XLA devices and on the host.

Host tensors travel over gloo. Tensors on an accelerator travel through torch_xla's own process group, whose collectives
are part of the recorded graph. XLA's CPU devices have none between processes (each process sees a world of one, and an
all-reduce returns its input), so there they are carried over gloo too: the graph is run up to the collective.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model
import torch_xla.runtime
from torch import Tensor
from torch_xla.distributed.xla_backend import ProcessGroupXla

from ...torch_internals import GROUP_METHODS, finished, tree_leaves, tree_map_only
from ...torch_xla_internals import mesh_of, run_recorded

NAME = "ddpify_xla"

# How long a process waits for the others where all of them train: longer than their compilations differ.
LIMIT = timedelta(seconds=60)

_WITH_TENSORS = (
    *GROUP_METHODS,
    "allreduce",
    "broadcast",
    "allgather",
    "reduce",
    "reduce_scatter",
    "gather",
    "scatter",
    "alltoall_base",
    "send",
    "recv",
)


_ProcessGroup: Any = dist.ProcessGroup  # its stubs know neither its overrides nor gloo's methods


class ProcessGroup(_ProcessGroup):  # type: ignore[misc]
    """`host` carries host tensors; `device` what lies on an accelerator, or None where that goes over `host` too."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        with _silent_stdout():
            self.host: Any = dist.ProcessGroupGloo(store, rank, size, timeout)
        is_cpu = torch_xla.runtime.device_type() == "CPU"
        self.device = None if is_cpu else _OnDevice(store, rank, size, timeout)

    def getBackendName(self) -> str:  # noqa: N802  torch's name
        return NAME

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def barrier(self, opts: Any) -> Any:
        run_recorded()
        return self.host.barrier(opts)

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        run_recorded()
        self.host.monitored_barrier(timeout, wait_all_ranks)

    def _run(self, name: str, *args: Any) -> Any:
        if not any(tensor.device.type == "xla" for tensor in tree_leaves(args) if isinstance(tensor, Tensor)):
            run_recorded()  # a rank that is waited for must not be waiting within its graph
            return getattr(self.host, name)(*args)
        if self.device is not None:
            return getattr(self.device, name)(*args)
        return self._over_host(name, *args)

    def _over_host(self, name: str, results: Any, *args: Any) -> Any:
        """Run a collective on host copies. The tensors that it writes to are its first argument, as everywhere."""
        if args and hasattr(args[-1], "timeout"):
            args[-1].timeout = LIMIT
        run_recorded()  # reading one tensor would run what that needs, and later run it again
        copies = tree_map_only(Tensor, Tensor.cpu, results)
        try:
            getattr(self.host, name)(copies, *tree_map_only(Tensor, Tensor.cpu, args)).wait()
        except RuntimeError as error:
            raise RuntimeError(f"ddpify: rank {self.rank()} lost the other processes in {name}: {error}") from None
        with torch.no_grad():
            for result, copy in zip(tree_leaves(results), tree_leaves(copies), strict=True):
                result.copy_(copy)
        return _done(results)


class _OnDevice(ProcessGroupXla):  # type: ignore[misc]
    """torch_xla's group as a part of another one: its own broadcast asks torch for its ranks, which knows the other."""

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Any:
        root = tensors[opts.rootTensor]
        torch_xla.core.xla_model.collective_broadcast([root], opts.rootRank, groups=mesh_of(self), pin_layout=False)
        return _done(tensors)


def _done(results: Any) -> Any:
    done: Any = torch.futures.Future()
    done.set_result(results)
    return finished(done)


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Without the line that gloo writes to the standard output of each process in torch 2.9."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _method(name: str) -> Callable[..., Any]:
    def collective(self: ProcessGroup, *args: Any) -> Any:
        return self._run(name, *args)

    return collective


for _name in _WITH_TENSORS:
    setattr(ProcessGroup, _name, _method(_name))

dist.Backend.register_backend(NAME, ProcessGroup, devices=["xla", "cpu"])
