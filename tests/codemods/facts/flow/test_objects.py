"""Attributes and classes of a program."""

from __future__ import annotations

from tests.codemods.facts.flow.followed import TRAINING, followed

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
