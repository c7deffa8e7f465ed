"""When a checkpoint is due: after so many steps, or after so many seconds by rank 0's clock."""

from __future__ import annotations

import time

from ..process_group import get_world_size
from ..sharding.collectives import broadcast_object


class Due:
    """Counts steps. All ranks count alike; they ask for rank 0's clock where its time may be over, not at each step."""

    def __init__(self, seconds: float, steps: int | None) -> None:
        self._seconds, self._every = seconds, steps
        self._steps = self._saved = 0
        self._look = 1  # the step at which the clock is looked at again
        self._since = time.monotonic()

    def step(self) -> bool:
        """Whether a checkpoint is due before this step; every rank gets the same answer."""
        self._steps += 1
        if self._every is not None:
            return self._steps - self._saved >= self._every
        if self._steps < self._look:
            return False
        answer = self._ask()
        is_due, ahead = broadcast_object(answer) if get_world_size() > 1 else answer
        self._look = self._steps + ahead
        return is_due

    def saved(self) -> None:
        """A checkpoint was written."""
        self._saved, self._since = self._steps, time.monotonic()

    def _ask(self) -> tuple[bool, int]:
        """Whether the time is over, and after how many steps to look again: at most as many as were made since."""
        passed, made = time.monotonic() - self._since, self._steps - self._saved
        if passed >= self._seconds:
            return True, 1
        return False, max(1, min(made, int((self._seconds - passed) * made / max(passed, 1e-6))))
