"""Whether a loader that shuffles has the same order in each epoch: its sampler is not told which one it is."""

from __future__ import annotations

from pathlib import Path

from ddpify.verify.runs import Record

_MANY = 8  # samples of a pass; the same order of so many by chance is one in 40,000


def repeated_orders(record: Record) -> list[str]:
    """What goes through its samples in one order twice, a sentence for each place that makes such loaders.

    Args:
        record: that of a rank.
    """
    passes: dict[str, list[list[list[int]]]] = {}
    for number, origin in sorted(record.shuffled.items()):
        passes.setdefault(origin, []).extend(record.drawn.get(number, []))
    return [
        f"the loader of {Path(origin.rpartition(' ')[0]).name} shuffles, and has the order of its first epoch in each"
        for origin, each in passes.items()
        if _is_repeated(each)
    ]


def _is_repeated(passes: list[list[list[int]]]) -> bool:
    orders = [[index for batch in batches for index in batch] for batches in passes]
    orders = [each for each in orders if len(each) >= _MANY]
    return len(orders) > 1 and all(each[: len(orders[0])] == orders[0][: len(each)] for each in orders)
