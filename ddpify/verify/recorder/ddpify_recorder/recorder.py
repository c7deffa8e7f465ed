"""The events of a process, and the file that they are written to."""

from __future__ import annotations

import gc
import io
import os
import pickle
import time
import weakref
from pathlib import Path
from typing import Any, BinaryIO

from torch.optim import Optimizer

from ddpify_recorder.noise import Arguments, Noise
from ddpify_recorder.states import RunningStatistics, gradients_of, names_of, parameters_of, random_states
from ddpify_recorder.traces import Trace, rank_of_process, trace


class Recorder:
    """Writes one file a rank; each record is (kind, values).

    names: the optimizer's number in order of creation, the class as which it steps, the names of its parameters; at its
    first step. step: see `after`. pass: the number of a pass over a loader, and what it is of, see `loaders._pass`.
    batch: the number of the pass, the ids of the samples (their indices, or digests of them where a data set is a
    stream). look: a forward of DistributedDataParallel without gradients. loaded: how many keys a load_state_dict
    missed. divided: the number of a loader, that of its pass, how many batches it says it has, where it was made
    if it shuffles.
    drawn: the same two numbers, the indices of a batch. hash: of a word. remark: a warning of ddpify_runtime. stopped:
    DDPIFY_STEPS were made.
    """

    def __init__(self, folder: Path, steps: int, noise: Noise | None, plain: bool) -> None:
        self.folder, self.steps, self.noise, self.plain = folder, steps, noise, plain
        self.streams: dict[int, BinaryIO] = {}
        self.numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self.statistics = RunningStatistics()
        self.depths: dict[int, int] = {}
        self.grads: dict[int, list[Trace | None]] = {}
        self.named: set[int] = set()
        self.losses: list[float] = []
        self.rows: list[int] = []
        self.norms: list[Any] = []
        self.inputs: list[tuple[tuple[int, ...], ...]] = []
        self.synced: list[bool] = []
        self.shadowed: list[str] = []
        self.carried = self.replaced = False
        self.penalties = self.nested = self.looks = self.begun = 0
        self.made = self.forwards = self.backwards = self.passes = 0
        self.stopped = False

    def write(self, kind: str, values: Any) -> None:
        rank = rank_of_process()
        if rank not in self.streams:
            self.streams[rank] = (self.folder / f"rank{rank}.pkl").open("ab", buffering=0)
        self.streams[rank].write(pickle.dumps((kind, values), protocol=5))

    def number_of(self, optimizer: Optimizer) -> int:
        """In order of creation; -1 for the one within a ZeroRedundancyOptimizer, which is made while that is."""
        if optimizer not in self.numbers:
            groups = {*map(id, optimizer.param_groups)}
            made_again = (  # as Horovod does, of the groups of another one
                number for other, number in self.numbers.items() if groups & {*map(id, other.param_groups)}
            )
            within = any(getattr(each, "initialized", True) is False for each in self.numbers)
            number = next(made_again, max(self.numbers.values(), default=-1) + 1)
            self.numbers[optimizer] = -1 if within else number
        return self.numbers[optimizer]

    def before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Arguments | None:
        disturbed: Arguments | None = None
        number = self.number_of(optimizer)
        if number < 0:
            return None
        self.depths[number] = self.depths.get(number, 0) + 1
        if self.depths[number] == 1:  # a subclass that calls super().step() is one step
            if self.noise:
                disturbed = self.noise.before(optimizer, args, kwargs)
            self.grads[number] = gradients_of(optimizer)
            self.begun = self.backwards
        elif hasattr(optimizer, "skip_synchronize"):  # Horovod's: it has averaged them by now
            self.grads[number] = gradients_of(optimizer)
        return disturbed

    def after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        number = self.number_of(optimizer)
        if number < 0:
            return
        self.depths[number] -= 1
        if self.depths[number]:
            return
        used = self.grads.pop(number)
        if len(args) > 1 or kwargs.get("closure") is not None:  # the closure computed them within the step
            used = gradients_of(optimizer)
        if not self.named:
            self.write("hash", hash("ddpify"))
        if number not in self.named:
            self.named.add(number)
            kind = "SGD" if self.plain else type(optimizer).__name__
            self.write("names", (number, kind, names_of(parameters_of(optimizer))))
        step = {
            "optimizer": number,
            "params": [trace(parameter) for parameter in parameters_of(optimizer)],
            "grads": used,
            "buffers": [trace(buffer) for buffer in self.statistics],
            "rates": [float(group.get("lr", 0.0)) for group in optimizer.param_groups],
            "losses": self.losses,  # what .backward() was called on since the step before
            "forwards": self.forwards,  # of torch's DistributedDataParallel, so far
            "rows": self.rows,  # of the first input of each such forward since the step before
            "backwards": self.backwards,  # so far
            "draws": random_states(),
            # Since the step before: what the samples were that modules were called with; whether a module was given
            # what it had returned; the norms that were clipped; calls of autograd.grad that can be differentiated;
            # backwards within another one
            "inputs": self.inputs,
            "carried": self.carried,
            "norms": [float(norm) for norm in self.norms],
            "penalties": self.penalties,
            "nested": self.nested,
            "closures": self.backwards - self.begun,  # backwards within the step
            "looks": self.looks,  # those of the forwards that had no gradients
            "synced": self.synced,  # of each forward since the step before: not in no_sync()
            "shadowed": self.shadowed,  # attributes of the module that were set on its wrapper
            "replaced": self.replaced,  # whether the module has parameters that it did not have when it was wrapped
        }
        self.losses, self.rows, self.norms, self.inputs, self.synced = [], [], [], [], []
        self.carried, self.penalties, self.nested = False, 0, 0
        self.write("step", step)
        self.made += 1
        if self.steps and self.made >= self.steps:
            self.stop()

    def stop(self) -> None:
        """End the script as it would end itself: its files are closed, what it has registered for its exit runs."""
        if self.made > self.steps:  # it has caught the SystemExit
            leave()
        self.write("stopped", self.steps)
        self.stopped = True
        raise SystemExit(0)

    def end(self) -> None:
        if self.stopped:
            leave()
        wait_for_threads()


def leave() -> None:
    """End at once: gloo aborts an interpreter that ends while a process group is still there."""
    for value in gc.get_objects():
        if issubclass(type(value), io.IOBase) and not value.closed and value.writable():
            value.flush()
    os._exit(0)


def wait_for_threads() -> None:
    """Wait until gloo's threads sleep: one that still holds a tensor of Python's aborts an interpreter that ends.

    So torch does, also after destroy_process_group where there was a DistributedDataParallel, if a thread gets no
    processor meanwhile (3 of 25 runs with threads that only run when nothing else does;
    https://github.com/pytorch/pytorch/pull/179291). A run that is done must not count as one that failed.
    """
    until = time.monotonic() + 10
    while time.monotonic() < until and any(map(_awake, Path("/proc/self/task").glob("*/stat"))):
        time.sleep(0.001)


def _awake(thread: Path) -> bool:
    try:
        name, _, rest = thread.read_text().partition("(")[2].rpartition(")")
    except OSError:  # it has ended
        return False
    return "gloo" in name and not rest.startswith(" S")
