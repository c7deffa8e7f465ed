"""Ends processes as a power failure would, once: at an optimizer step, some time after the first one, or in a save.

DIES: what ends, `worker`, `agent` or `all`. DIES_AT: a number of steps, `write` for the middle of a checkpoint, or
`0.3s`. DIES_RANK: whose count it is. A file `died` in the working folder says that it was done.
"""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

RANK, WHAT, AT = os.environ.get("RANK", "0"), os.environ.get("DIES", ""), os.environ.get("DIES_AT", "")
steps = 0


def die() -> None:
    try:
        os.close(os.open("died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if WHAT in ("agent", "all") and "RANK" in os.environ:
        os.kill(os.getppid(), signal.SIGKILL)
    if WHAT == "all":
        for other in Path().glob("pid.*"):
            if int(other.read_text()) != os.getpid():
                os.kill(int(other.read_text()), signal.SIGKILL)
    if WHAT in ("worker", "all"):
        os.kill(os.getpid(), signal.SIGKILL)


def step(*_: object) -> None:
    global steps
    steps += 1
    if os.environ.get("DIES_RANK", "0") != RANK:
        return
    if str(steps) == AT:
        die()
    elif AT.endswith("s") and steps == 1:
        threading.Timer(float(AT[:-1]), die).start()


def half(data: object, file: Any, **options: Any) -> None:
    global writes
    writes += "checkpoint.pt" in str(getattr(file, "name", ""))  # pickling a tensor calls torch.save too
    if writes == 3 and not Path("died").exists():
        file.write(b"half of a checkpoint")
        file.flush()
        die()
    save(data, file, **options)


if WHAT:
    Path(f"pid.{RANK}").write_text(str(os.getpid()))
    register_optimizer_step_post_hook(step)
    if AT == "write":
        writes, save = 0, torch.save
        torch.save = half  # type: ignore[assignment]
