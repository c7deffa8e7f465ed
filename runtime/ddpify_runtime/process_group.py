"""Start and end of the process group, and what has to be alike on every rank before the script's own code runs."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import sys
import threading
from types import TracebackType

import torch.distributed as dist

from . import engines, report
from .agreement import check, failure, hidden_group, hydra_folder, interrupts, random_states, standard_streams
from .forward.routes import release
from .launch import environment, failures, restarts
from .launch.start import start_processes
from .sharding.collectives import broadcast_object

_failed = False
_forked = False
_left: dict[int, int] = {}  # the rank that each thread had when it left the group: one but where devices are threads


def init_process_group(backend: str, init_method: str | None = None, nprocs: int = 1) -> None:
    """Join the processes of this run, if there are several; do nothing in a script that was started alone.

    The launcher's environment decides (launch/launchers.py; `DDPIFY_NPROC=N python train.py` starts N processes here).
    Every rank then has rank 0's random number states (HAZARDS S1, D11), its own GPU as the current device, and, unless
    it is rank 0, silent stdout and stderr (I1; tracebacks still show).

    Args:
        backend: "nccl" for GPUs, "gloo" for CPUs, "xccl" for Intel's GPUs, as in torch.distributed; "ccl" for those
            with the bindings of oneCCL, which the script imports; "mpi" for what mpirun starts, over torch's MPI where
            it is built in, else over gloo; "xla" for XLA devices.
        init_method: as in torch.distributed; the environment by default. With "xla" the device decides.
        nprocs: how many processes a script that was started alone becomes, by torchrun; 0 and 1 for that one.
            `DDPIFY_NPROC` counts instead, where it is set.

    Raises:
        RuntimeError: the backend or the launcher's environment is not known.
        SystemExit: there are several processes, but not the devices that the backend needs; its message is a line.
    """
    if dist.is_initialized() or getattr(multiprocessing.current_process(), "_inheriting", False):
        return  # a second call, or a spawned DataLoader worker that imports the script again
    if nprocs > 1:
        start_processes(nprocs)
    started = engines.use(backend).start(backend, init_method)
    if started is None:
        return
    _join(*started)
    hidden_group.hide()
    _broadcast_random_states()
    hydra_folder.agree()
    check.start()
    if dist.get_rank():
        standard_streams.silence()
    interrupts.watch()
    sys.excepthook = _report_failure
    atexit.register(_end)


def _join(backend: str, init_method: str | None) -> None:
    store = restarts.store() if init_method is None else None
    if store is None:
        dist.init_process_group(backend, init_method)
    else:
        place = environment.read()
        dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.world_size)


def destroy_process_group() -> None:
    """Wait for the other ranks and leave the process group; nothing to do in a script that was started alone."""
    if not dist.is_initialized():
        return
    check.finish()
    report.finish()
    dist.barrier()
    # A gloo worker thread that outlives the interpreter aborts the process after a good run (seen 5 times in 79 ends of
    # other tools): every object that still holds the group must go before the group does.
    release()
    gc.collect()
    _left[threading.get_ident()] = dist.get_rank()
    hidden_group.show()
    dist.destroy_process_group()
    gc.collect()


def get_rank() -> int:
    """This process's rank, 0 to world size - 1; 0 without a process group, what it was after leaving one."""
    if dist.is_initialized():
        return dist.get_rank()
    ranks = {*_left.values()}
    return _left.get(threading.get_ident(), ranks.pop() if len(ranks) == 1 else 0)


def get_world_size() -> int:
    """The number of processes; 1 without a process group."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_forked() -> bool:
    """Whether this process was forked by one in a process group: it must not use that, whose messages are its
    parent's, and comes to no place in step with the other ranks."""
    return _forked


def get_local_rank() -> int:
    """The rank among the processes of this machine, which is the index of this process's GPU."""
    return environment.read().local_rank


def _after_fork() -> None:
    global _forked
    _forked = dist.is_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _broadcast_random_states() -> None:
    """Give every rank the states of rank 0, so that unseeded scripts draw alike too."""
    random_states.write(broadcast_object(random_states.read()))


def _report_failure(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    global _failed
    _failed = True
    if standard_streams.STDERR is not None:
        sys.stderr = standard_streams.STDERR
    try:
        engines.here().report(kind, error, trace)
    finally:
        failures.record_exception(get_rank(), kind, error, trace)
        failure.wait_for_threads_only_briefly()


def _end() -> None:
    """At exit: leave in step with the others, unless this or another process ends for another reason."""
    if not _failed:
        standard_streams.leave_silent()
    if _failed or interrupts.met() or is_forked() or not dist.is_initialized():
        return
    if not failure.everyone_is_here(failure.END_LIMIT):
        failure.leave(
            f"rank {dist.get_rank()} has come to its end, and the others not within {failure.END_LIMIT.seconds} s: "
            "sys.exit, or a decision taken on one rank only"
        )
    destroy_process_group()
