"""What a conversion is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .result import Result

ONE_DEVICE = "none"  # the word after --target
LOCAL_BATCH_NORM = "sync_batch_norm=False"  # what --batch-norm local writes


@dataclass(frozen=True)
class ConversionOptions:
    """What a program is converted for, and how; "" leaves what an earlier conversion chose as it is.

    target: the name of one, ONE_DEVICE to go back, or "" for the one that the program is converted for.
    modernize: whether old spellings of XLA code are rewritten too.
    xla_reduce: how gradients are reduced on XLA, "ddp" or "native".
    roots: the folders where absolute imports are found (none: what they name is not looked for).
    batch_norm: whose statistics BatchNorm takes, "batch" or "local"; "batch" at first.
    style: "exact" or "plain"; "exact" at first.
    sync_batchnorm: of the plain style, whether BatchNorm is synchronized.
    per_process: whether the batch size is that of each process; None leaves it, no at first.
    backend: one of the target's; its usual one at first.
    entry: who starts the processes, "spawn" for the script itself or "torchrun" (any launcher), which is it at first.
    optimizer_sharding: whether each process keeps a part of the optimizers' state; what is converted so stays so.
    fully_sharded: whether each process keeps a part of the model (fully_shard); None leaves it, no at first.
    resume: the folder of checkpoints that a run goes on from, or "" for none.
    for_writing: whether the outcome may be written. If not, it is enough to know whether it is another text.
    """

    target: str = ""
    modernize: bool = False
    xla_reduce: str = "ddp"
    roots: tuple[Path, ...] = ()
    batch_norm: str = ""
    style: str = ""
    sync_batchnorm: bool = False
    per_process: bool | None = None
    backend: str = ""
    entry: str = ""
    optimizer_sharding: bool = False
    fully_sharded: bool | None = None
    resume: str = ""
    for_writing: bool = True


# Converts a program further, which some moves need: the engine hands itself to them.
Convert: TypeAlias = Callable[[Mapping[Path, str], ConversionOptions], dict[Path, Result]]
