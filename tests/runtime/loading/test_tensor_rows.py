"""Samples of a TensorDataset, taken from its tensors at once: those of default_collate."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime.loading.tensor_rows import batch_of
from torch.utils.data import Subset, TensorDataset, default_collate

DATA = TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10))


@pytest.mark.parametrize("indices", [[3], [7, 0, 7, 2], list(range(10))])
def test_the_batch_is_that_of_default_collate(indices: list[int]) -> None:
    for dataset in (DATA, Subset(Subset(DATA, list(range(9, -1, -1))), list(range(10)))):
        found, expected = batch_of(dataset, indices), default_collate([dataset[index] for index in indices])
        assert found is not None
        assert all(map(torch.equal, found, expected)) and len(found) == len(expected)


def test_other_data_sets_and_indices_are_loaded_sample_by_sample() -> None:
    class Own(TensorDataset):
        pass

    assert batch_of(Own(torch.ones(3)), [0]) is None
    assert batch_of(DATA, [-1]) is None
    assert batch_of(DATA, [True]) is None
