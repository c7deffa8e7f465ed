"""Attributes and classes of a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.followed import HEAD, TRAINING, followed, undivided

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


CLASS_METHODS = """\
class Net(nn.Module):
    def __init__(self, width, scale=1):
        super().__init__()
        self.layer = nn.Linear(4, width)

    @classmethod
    def of(cls, width):
        return cls(width)

    @classmethod
    def hits(cls, rate, out, y):
        return (out.argmax(1) == y).sum().item()

    def forward(self, x):
        return self.layer(x)

class Coupled(Net):
    @classmethod
    def of(cls, width):
        return super().of(width)

    def forward(self, x):
        return self.layer(x @ x.t() @ x)
"""
USED = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        total += {counts}
print(total)
"""


@pytest.mark.parametrize("counts", ["Net.hits(2, model(x), y)", "model.hits(2, model(x), y)"])
def test_a_class_method_gets_its_class_first(counts: str) -> None:
    known = followed(f"{CLASS_METHODS}model = Net.of(3)\n{USED.format(counts=counts)}")
    assert not known.problems and {each.kind for each in known.found.after} == {"sum"}


def test_a_class_method_that_is_inherited_makes_what_it_is_asked_of() -> None:
    source = f"{CLASS_METHODS}model = Coupled.of(3)\n{USED.format(counts='0')}"
    assert undivided(source) and not undivided(source.replace("Coupled.of", "Net.of"))


CHOSEN = """\
import argparse
import sys
from settings import Node, fill


class Coupled(torch.nn.Module):
    def forward(self, x):
        return x - x.flip(0)


cfg = Node()
cfg.model = Node()
cfg.model.name = "other"
cfg.coupled = None
{}
if cfg.model.name == "coupled" or cfg.coupled is not None:
    model = torch.nn.Sequential(model, Coupled())
"""


@pytest.mark.parametrize(
    "changes",
    [
        "cfg.merge_from_list(sys.argv[1:])",
        "cfg.merge_from_file('settings.yaml')",
        "cfg.model.update(name=sys.argv[-1])",
        "fill(cfg)",
        "fill(cfg.model)",
        "fill([cfg])",
        "argparse.ArgumentParser().parse_args(namespace=cfg)",
        "if sys.argv[1:]:\n    cfg.merge_from_list(sys.argv[1:])",
        "for each in sys.argv[1:]:\n    fill(cfg, each)",
    ],
)
def test_settings_of_a_library_may_be_changed_where_it_is_not_followed(changes: str) -> None:
    assert not followed(CHOSEN.format("cfg.freeze()\nprint(cfg)") + TRAINING).problems
    assert followed(CHOSEN.format(changes) + TRAINING).problems
