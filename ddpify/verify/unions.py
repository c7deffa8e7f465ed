"""What the original is given in the place of its own batches: the union of those that the ranks drew, and the order of
the data set where the ranks evaluate in that order what it shuffles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest

from ddpify.verify.runs import Record

# For both runs: what depends on how batches are divided is left out.
NEUTRAL = {"DDPIFY_NEUTRAL": "1", "DDPIFY_DROPOUT": "off"}


def unions(ranks: Sequence[Record]) -> str:
    """The batches of all ranks together, and the loaders that go in order, as the recorder reads them.

    Args:
        ranks: the records of all ranks.
    """
    given = {}
    for number, length in ranks[0].lengths.items():
        passes = []
        for parts in zip_longest(*(rank.drawn.get(number, []) for rank in ranks), fillvalue=[]):
            batches = zip_longest(*parts, fillvalue=[])
            passes.append([_in_order(batch) for batch in batches])
        given[number] = (length, passes)
    return json.dumps({"drawn": given, "in_order": sorted(ranks[0].in_order)})


def _in_order(parts: Sequence[Sequence[int]]) -> list[int]:
    """The samples of the ranks' parts of a batch in the order of the sampler, of which rank r holds every W-th."""
    return [index for several in zip_longest(*parts) for index in several if index is not None]
