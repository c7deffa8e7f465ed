"""The batches of all ranks, held against those of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ddpify.verify.runs import Record

Passes = dict[int, list[tuple[int, ...]]]


@dataclass(frozen=True)
class Batches:
    """What a comparison of batches saw.

    same, divided: how many batches of the original the ranks together hold, and how many of these no rank holds whole.
    number, place: the pass and the place in it (1-based) of the first other batch; 0 if there is none. whole: the
    original's batch there; parts: those of the ranks. training: whether optimizer steps were made in that pass;
    shorter: whether it has fewer batches on rank 0 than in the original.
    padded: the passes, training or not, in which the ranks drew some samples twice that the original drew once.
    repeated: the ranks drew the order of an earlier pass again, the original did not.
    """

    same: int = 0
    divided: int = 0
    number: int = 0
    place: int = 0
    whole: tuple[int, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()
    training: bool = True
    shorter: bool = False
    padded: tuple[tuple[int, bool], ...] = ()
    repeated: bool = False


def compare_batches(original: Record, ranks: Sequence[Record]) -> Batches:
    """Hold the batches of each pass over a loader against each other, as far as both go.

    Args:
        original: of one process. ranks: of each process of the other run.
    """
    reference, others = _passes(original), [_passes(rank) for rank in ranks]
    same = divided = 0
    for number, wholes in reference.items():
        drawn = [other.get(number, []) for other in others]
        last = number == max(reference) or any(number == max(other, default=0) for other in others)
        length = min(map(len, [wholes, *drawn])) if last else max(map(len, [wholes, *drawn]))
        for place in range(length):
            whole = wholes[place] if place < len(wholes) else ()
            parts = tuple(each[place] if place < len(each) else () for each in drawn)
            if all(part == whole for part in parts):
                same += 1
            elif Counter(sample for part in parts for sample in part) == Counter(whole):
                same, divided = same + 1, divided + 1
            else:
                trained = _training(original)
                padded = tuple((n, n in trained) for n in reference if _is_padded(reference, others, n))
                shorter = len(drawn[0]) < len(wholes)
                repeated = _repeats(others[0]) and not _repeats(reference)
                return Batches(
                    same, divided, number, place + 1, whole, parts, number in trained, shorter, padded, repeated
                )
    return Batches(same, divided)


def _passes(record: Record) -> Passes:
    found: Passes = {}
    for batch in record.batches:
        found.setdefault(batch.number, []).append(batch.samples)
    return found


def _training(record: Record) -> set[int]:
    """The passes during which steps were made: the last batch before each step belongs to one."""
    return {record.batches[step.batches - 1].number for step in record.steps if step.batches}


def _is_padded(reference: Passes, others: Sequence[Passes], number: int) -> bool:
    before = Counter(sample for batch in reference[number] for sample in batch)
    now = Counter(sample for other in others for batch in other.get(number, []) for sample in batch)
    return max(before.values(), default=0) == 1 and 1 in now.values() and 2 in now.values()


def _repeats(passes: Passes) -> bool:
    """Whether a later pass draws the samples of an earlier one in the same order, and that order is a random one."""
    orders = [tuple(chain.from_iterable(batches)) for batches in passes.values() if len(batches) > 1]
    shuffled = [order for order in orders if list(order) != sorted(order)]
    return any(one[: len(two)] == two[: len(one)] for i, one in enumerate(shuffled) for two in shuffled[:i])
