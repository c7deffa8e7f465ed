"""What a forward does for numbers that it draws once for all samples: `if random.random() < self.p: mix the batch`.

A trial draws one number and sees one way. So it is repeated with the smallest and the largest that can be drawn.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_LARGEST = 1 - 2**-24  # below 1 in float32 too
EXTREMES = (0.0, _LARGEST)
_one_at_a_time = threading.Lock()  # devices may be threads


@contextmanager
def drawn_outside_of_torch(extreme: float | None) -> Iterator[None]:
    """Let Python's `random` and numpy draw numbers at one end of their range: 0 for the lowest; None: any.

    Only numbers with such ends; a normal distribution, say, goes on as it is.
    """
    if extreme is None:
        yield
        return
    with _one_at_a_time:
        places = [*_python(extreme), *_numpy(extreme)]
        before = [(module, name, getattr(module, name)) for module, name, _ in places]
        for module, name, draw in places:
            setattr(module, name, draw)
        try:
            yield
        finally:
            for module, name, draw in before:
                setattr(module, name, draw)


def _python(extreme: float) -> Iterator[tuple[ModuleType, str, Callable[..., Any]]]:
    yield random, "random", lambda: extreme
    yield random, "uniform", lambda a, b: a + (b - a) * extreme
    yield random, "randint", lambda a, b: b if extreme else a
    yield random, "choice", lambda values: values[-1 if extreme else 0]


def _numpy(extreme: float) -> Iterator[tuple[ModuleType, str, Callable[..., Any]]]:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return

    def of_size(value: Any, size: Any) -> Any:
        return value if size is None else numpy.full(size, value)

    def integer(low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> Any:
        first, end = (0, low) if high is None else (low, high)
        return of_size(dtype(end - 1 if extreme else first), size)

    yield numpy.random, "rand", lambda *size: of_size(extreme, size or None)
    yield numpy.random, "uniform", lambda low=0.0, high=1.0, size=None: of_size(low + (high - low) * extreme, size)
    yield numpy.random, "randint", integer
    for name in ("random", "random_sample"):
        yield numpy.random, name, lambda size=None: of_size(extreme, size)
