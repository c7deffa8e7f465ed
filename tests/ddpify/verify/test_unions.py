"""What the original is given in the place of its own batches."""

from __future__ import annotations

import json

from ddpify.verify.runs import Record
from ddpify.verify.unions import unions


def test_the_ranks_parts_in_the_order_of_the_sampler() -> None:
    ranks = [Record(), Record()]
    ranks[0].lengths = {0: 2}
    ranks[0].drawn = {0: [[[1, 3, 5], [7]]]}
    ranks[1].drawn = {0: [[[2, 4], [8]]]}
    assert json.loads(unions(ranks))["drawn"] == {"0": [2, [[[1, 2, 3, 4, 5], [7, 8]]]]}


def test_a_rank_that_has_no_batch_left() -> None:
    ranks = [Record(), Record()]
    ranks[0].lengths = {0: 2}
    ranks[0].drawn = {0: [[[1], [3]]]}
    ranks[1].drawn = {0: [[[2]]]}
    assert json.loads(unions(ranks))["drawn"] == {"0": [2, [[[1, 2], [3]]]]}
