"""A network that gives back something else in training."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import followed, reasons

NET = """\
import sys
def off(part):
    part.training = False
def of_one_kind(part):
    if isinstance(part, nn.BatchNorm1d):
        part.eval()
def fill(part):
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.other = nn.Linear(4, 3), nn.Linear(4, 3)
    def forward(self, x):
        outs = [self.out(x), self.other(x)]
        if self.training:
            return outs
        return torch.softmax(outs[0], 1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    {mode}
    for x, y in train_loader:
        optimizer.zero_grad()
        outs = model(x)
        sum([F.cross_entropy(outs[i], y) for i in range(len(outs))]).backward()
        optimizer.step()
    {after}
def test():
    model.eval()
    with torch.no_grad():
        print(sum([F.nll_loss(model(x).log(), y, reduction="sum").item() for x, y in test_loader]))
for epoch in range(2):
    train()
    test()
"""


@pytest.mark.parametrize(
    ("mode", "is_known"),
    [
        ("model.train()", True),
        ("model.train(True)", True),
        ("model.eval(); model.train()", True),
        ("pass", False),  # it is evaluated before
        ("model.train(); model.eval()", False),
        ("if len(sys.argv) > 1: model.train()", False),
        ("model.train(len(sys.argv) > 1)", False),
        ("model.out.train()", False),
        ("model.train(); model.apply(lambda part: part.eval())", False),
        ("model.train(); model.apply(off)", False),
        ("model.train(); model.apply(of_one_kind)", True),
        ("model.train(); model.apply(fill)", True),
        ("model.train(); [part.eval() for part in model.modules()]", False),
        ("model.train(); [part.eval() for part in model.modules() if isinstance(part, nn.BatchNorm1d)]", True),
        ("model.train()\n    for part in model.modules(): part.training = False", False),
    ],
)
def test_a_network_that_is_set_to_training_gives_back_what_it_does_in_training(mode: str, is_known: bool) -> None:
    assert (reasons(NET.format(mode=mode, after="pass")) == []) is is_known


def test_what_it_gives_back_in_evaluation_is_not_what_is_trained() -> None:
    found = followed(NET.format(mode="model.train()", after="model.eval()")).found
    assert found.training_forwards and not found.unused
