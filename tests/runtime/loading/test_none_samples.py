"""Collate functions that ask whether samples are None."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from ddpify_runtime.loading.none_samples import asks_for_none
from torch.utils.data import default_collate


class Kept:
    def __call__(self, samples: list[Any]) -> Any:
        return default_collate([each for each in samples if each is not None])


class Whole:
    def __call__(self, samples: list[Any]) -> Any:
        return default_collate(samples)

    def collate(self, samples: list[Any], fill: Any = None) -> Any:
        return default_collate([fill if each is None else each for each in samples])


def loop(samples: list[Any]) -> Any:
    kept = []
    for each in samples:
        if each is None:
            continue
        kept.append(each)
    return default_collate(kept)


@pytest.mark.parametrize(
    ("function", "asks"),
    [
        (lambda samples: default_collate([each for each in samples if each is not None]), True),
        (lambda samples: default_collate(list(filter(None, samples))), True),
        (lambda samples: default_collate(list(filter(lambda each: each is not None, samples))), True),
        (loop, True),
        (partial(loop), True),
        (Kept(), True),
        (Whole().collate, True),
        (Whole(), False),
        (lambda samples: default_collate(samples[::-1]), False),
        (default_collate, False),
        (list, False),
    ],
)
def test_code_that_compares_with_none(function: Any, asks: bool) -> None:
    assert asks_for_none(function) is asks
