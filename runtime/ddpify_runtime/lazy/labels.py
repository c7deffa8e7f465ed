"""Whether all labels of a data set count in a mean over classes: learnt from a whole pass over it.

Such a mean is divided by how many targets are not `ignore_index`, in the whole batch: a number over ranks, so that each
step has a collective of its own (HAZARDS L3). Once every sample's labels were seen, and none was left out, it is the
number of targets. Each rank then looks at its own labels: should one be left out after all, the run ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from torch import Tensor

from ..sharding.collectives import add_over_ranks

MOST = 10_000_000  # samples of a data set of which it is remembered which were seen


Ignored = tuple[int, Any, str]  # the number that is left out, the type and the part that it was looked for in


@dataclass
class _Asked:
    left_out: Tensor  # how many targets; of all ranks until it is known that there are none, then of this one
    batches: int = 0  # of this pass, of which somebody asked
    last: int = -1  # the last of them
    seen: set[int] = field(default_factory=set)  # samples, in earlier passes
    none: bool | None = None  # whether none is left out, once every sample was seen


class Labels:
    """The numbers at one place of the batches of a loader."""

    def __init__(self) -> None:
        self.batch = 0  # the number of batches in this pass
        self._asked: dict[Ignored, _Asked] = {}
        self._not_negative: set[int] = set()  # samples in batches that were loaded whole

    @property
    def learns(self) -> bool:
        """Whether somebody asks, and it is not known yet."""
        return any(asked.none is None for asked in self._asked.values())

    def all_count(self, mine: Tensor, ignored: Ignored) -> bool:
        """Whether every target of the whole batch is known to count, and this rank has seen that its own do.

        Args:
            mine: this rank's targets. ignored: as for `count`.
        """
        asked = self._asked.get(ignored)
        if asked is None or not asked.none or ignored[0] >= 0 or mine.device.type != "cpu":
            return False
        return bool(mine.numel()) and int(mine.min()) >= 0  # a third of the price of counting

    def count(self, counting: Tensor, mine: int, total: int, ignored: Ignored) -> Tensor | int:
        """How many targets of the whole batch count; a collective unless that is known.

        Args:
            counting: how many of this rank's do, a number. mine, total: how many this rank has, and all ranks have.
            ignored: what is left out, and where it was looked for.
        Raises:
            RuntimeError: one is left out, though a whole pass over the data set had none.
        """
        asked = self._asked.get(ignored)
        if asked is None:
            asked = self._asked[ignored] = _Asked(counting.new_zeros(()))
        if asked.none:
            if counting.device.type != "cpu":  # where it is read at the end of the pass
                asked.left_out += mine - counting
            elif int(counting) != mine:
                _refuse()
            return total
        whole = counting.clone()
        add_over_ranks(whole)
        if asked.none is None:
            asked.left_out += total - whole
            asked.batches += asked.last != self.batch
            asked.last = self.batch
        return whole

    def loaded_whole(self, samples: Iterable[int], numbers: Tensor) -> None:
        """What every rank sees of a batch that all have whole, whoever asks for it, and whatever view of it.

        Args:
            samples: of which the batch is made. numbers: theirs, of any type.
        """
        can_be = numbers.device.type == "cpu" and not numbers.is_floating_point() and not numbers.is_complex()
        if can_be and numbers.numel() and int(numbers.min()) >= 0:
            self._not_negative.update(samples)

    def passed(self, samples: set[int], size: int) -> None:
        """A pass has ended, of which every rank loaded its part: of which samples of a data set of that size."""
        for ignored, asked in self._asked.items():
            if asked.none:
                _require_none(asked)
            elif asked.none is None and asked.batches == self.batch:
                asked.seen |= samples if ignored[0] >= 0 else samples | self._not_negative
                if len(asked.seen) == size > 0:
                    asked.none = not asked.left_out
                    asked.seen = set()
            asked.batches, asked.last = 0, -1
        self.batch = 0


def _require_none(asked: _Asked) -> None:
    if asked.left_out:
        _refuse()


def _refuse() -> NoReturn:
    raise RuntimeError(
        "ddpify: a target is left out of the loss now (ignore_index), but none was in a whole pass over the data "
        "set; the steps of this pass may be wrong: import DataLoader from torch.utils.data, not ddpify_runtime"
    )
