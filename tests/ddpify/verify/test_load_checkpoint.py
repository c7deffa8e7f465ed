"""A checkpoint as a flat list of its leaves."""

from __future__ import annotations

import torch

from ddpify.verify.load_checkpoint import leaves


class Kept:
    def __init__(self) -> None:
        self.epoch = 3


def test_leaves_and_their_paths() -> None:
    value = {"net": {"weight": torch.ones(2, dtype=torch.bfloat16)}, "rates": [0.1, None], "kept": Kept()}
    found = dict(leaves(value, (), set()))
    assert found["net", "weight"].tolist() == [1.0, 1.0]
    assert (found["rates", 0], found["rates", 1]) == (0.1, None)
    assert found["kept", ".epoch"] == 3 and found["kept", "<type>"].endswith("Kept")


def test_a_value_that_holds_itself_ends() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "seen before" in dict(leaves(loop, (), set())).values()
