"""What functions that train are given for a loader."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

GIVEN = """\
def run(loader, train=True):
    for epoch in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


run(DataLoader(train_set, batch_size=12, shuffle=True))
{other}
"""


def given(other: str) -> str:
    """What becomes of a function that trains, which something else is given, too."""
    result = plain(HEAD + GIVEN.format(other=other))
    assert not refusals(result)
    return result.code


@pytest.mark.parametrize("other", ["run(DataLoader(train_set, batch_size=12), train=False)", "run(other, False)"])
def test_a_function_that_trains_is_given_a_loader_of_an_evaluation_as_well(other: str) -> None:
    asked = '        if isinstance(getattr(loader, "sampler", None), DistributedSampler):\n'
    made = "other = DataLoader(TensorDataset(torch.rand(9, 4), torch.zeros(9).long()), batch_size=3)\n"
    assert asked + "            loader.sampler.set_epoch(epoch)\n" in given(made + other)


@pytest.mark.parametrize("other", ["", "run(DataLoader(train_set, batch_size=6, shuffle=True))"])
def test_a_function_that_trains_is_given_loaders_of_training_alone(other: str) -> None:
    assert "    for epoch in range(2):\n        loader.sampler.set_epoch(epoch)\n" in given(other)
