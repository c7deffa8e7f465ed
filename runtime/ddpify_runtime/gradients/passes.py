"""Which kind of pass through a graph runs: `.backward()`, or torch.autograd.grad, which gives gradients back.

The latter accumulates nothing, so nothing is reduced. What it gives for the parameters of a divided forward is
`world_size` times a rank's part of the gradient. A script's own calls are converted (gradients/grad.py); those of a
library, such as the inner step of a MAML in its forward, are seen here, whatever name they were imported by (L15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from ..agreement import interrupts
from ..torch_internals import get_in_thread, put_in_thread, see_passes, take_from_thread

_NAME = "ddpify_pass"


class Pass:
    """A pass of torch.autograd.grad. entered: whether it has come to what a divided forward has computed."""

    def __init__(self) -> None:
        self.entered = False


def running() -> Pass | None:
    """The pass of torch.autograd.grad that runs here, on whichever thread of torch's; None for another kind."""
    return get_in_thread(_NAME)  # type: ignore[no-any-return]


@contextmanager
def _begun(each: Pass | None) -> Iterator[None]:
    before = get_in_thread(_NAME)
    put_in_thread(_NAME, each)
    try:
        yield
    finally:
        if before is None:
            take_from_thread(_NAME)
        else:
            put_in_thread(_NAME, before)


def follow(average: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]) -> None:
    """See every pass from now on.

    Args:
        average: gets what was differentiated by and its gradients, where a divided forward was come to; gives the
            gradients as they should be.
    """

    def run(engine: Callable[..., Any], outputs: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return begin(engine, outputs, *args, **kwargs)
        except RuntimeError:  # on a thread of torch's, or in a collective of torch's own
            interrupts.run_handlers()
            raise

    def begin(engine: Callable[..., Any], outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("accumulate_grad", True):
            if running() is None:
                return engine(outputs, *args, **kwargs)
            with _begun(None):
                return engine(outputs, *args, **kwargs)
        seen, inputs = Pass(), args[3]
        with _begun(seen):
            found = engine(outputs, *args, **kwargs)
        # Also within a backward, where a Function hands them on: what is equal on all ranks is its own mean there.
        return average(inputs, found) if seen.entered else found

    see_passes(run)


def is_parameter(value: Any) -> bool:
    """Without asking `isinstance`, for which the traced tensors of a compiler are parameters too."""
    return issubclass(type(value), nn.Parameter)
