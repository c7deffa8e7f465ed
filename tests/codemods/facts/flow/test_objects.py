"""Attributes and classes of a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.followed import HEAD, TRAINING, followed

TRAINER = """
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
    def train(self):
        for x, y in self.loader:
            optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            optimizer.step()
Trainer(model, train_loader).train()
"""


def test_attributes_lead_to_models_and_loaders() -> None:
    found = followed(TRAINER)
    assert found.problems == () and list(found.status.values()).count("training") == 1
    assert followed(TRAINING).status.keys() != found.status.keys()


@pytest.mark.parametrize("count", ["x[y > 1].shape[0]", "x[y > 1].size(0)", "len(x[y > 1])"])
def test_how_many_samples_are_picked_is_a_sum_over_ranks(count: str) -> None:
    """Not the number of a rank's samples, of which all ranks have as many."""
    found = followed(f"{TRAINING}        print({count})\n").found
    assert {each.kind for reductions in found.reductions.values() for each in reductions} == {"sum"}


def test_a_mean_over_the_samples_that_are_picked_is_divided_by_their_number_on_all_ranks() -> None:
    loss = "F.cross_entropy(model(x), y, reduction='none')[y > 0].sum() / y[y > 0].shape[0]"
    for code, kinds in ((loss, {"mean"}), (loss.replace("[y > 0]", ""), set())):
        found = followed(TRAINING.replace("F.cross_entropy(model(x), y)", code))
        assert not found.problems
        assert {each.kind for reductions in found.found.reductions.values() for each in reductions} == kinds


PACKAGE = {
    "nets/__init__.py": "from .small import *\n",
    "nets/small.py": "import torch.nn as nn\n\ndef linear():\n    return nn.Linear(4, 3)\n",
}


@pytest.mark.parametrize(
    ("made", "is_known"),
    [
        ("nets.small.linear()", True),
        ("nets.small.__dict__[sys.argv[1]]()", True),
        ("nets.large.linear()", False),
    ],
)
def test_a_file_of_a_package_that_its_own_init_imports_is_an_attribute_of_it(made: str, is_known: bool) -> None:
    source = "import sys\nimport nets\n" + HEAD.replace("nn.Linear(4, 3)", made) + TRAINING
    paths = {Path("train.py"): source, **{Path(name): text for name, text in PACKAGE.items()}}
    result = convert(paths, "cpu", style="plain")[Path("train.py")]
    assert ("DistributedDataParallel(model" in result.code) is is_known
