"""What is otherwise with XLA devices; see `native.Engine`."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch_xla
import torch_xla.core.xla_model

from ...torch_xla_internals import is_initialized
from .. import native
from . import failure
from .functional import functional
from .steps import Steps


class Engine(native.Engine):
    """XLA devices: operations are recorded, and run as one program for each step."""

    records = True

    def start(self, backend: str, init_method: str | None) -> tuple[str, str | None] | None:
        from .process_group import NAME
        from .start import rendezvous

        found = rendezvous()  # the device decides
        torch_xla.device()  # autograd makes its queues in its first backward, for the devices that are there by then
        return None if found is None else (NAME, found)

    def steps(self, batches: Iterator[Any]) -> Steps:
        return Steps(batches)

    def random_state(self) -> int | None:
        if not is_initialized():
            return None
        return int(torch_xla.core.xla_model.get_rng_state())

    def set_random_state(self, state: int) -> None:
        if state != self.random_state():  # setting it also changes what follows the next sync
            torch_xla.manual_seed(state)

    def intercepted(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return functional(result, args, kwargs)

    def report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        failure.report(kind, error, trace)
