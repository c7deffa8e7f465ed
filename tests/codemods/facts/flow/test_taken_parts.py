"""Parts of networks that are made for them alone belong to the network that gets them."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import HEAD, TRAINING, wrapped

BACKBONE = """\
KEPT = []


class Backbone(nn.Module):
    def __init__(self):
        super(Backbone, self).__init__()
        self.features = nn.Linear(4, 8)
        self.fc = nn.Linear(8, 3){in_init}

    def forward(self, x):
        return self.fc(self.features(x))


class Net(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.base(x))


def made():
    backbone = Backbone()
    backbone.eval(){in_factory}
    return backbone


"""
OPTIMIZER = (
    'optimizer = torch.optim.SGD([{"params": NET.base.parameters()}, {"params": NET.head.parameters()}], lr=0.1)\n'
)


def problems(made: str, in_init: str = "", in_factory: str = "", before: str = "") -> list[str]:
    """Why a network is not wrapped that is given a part of another one."""
    head = HEAD.partition("model = ")[0] + BACKBONE.format(in_init=in_init, in_factory=in_factory)
    optimizer = OPTIMIZER.replace("NET", "model")
    result = wrapped(f"{made}\n{optimizer}{before}{TRAINING}", head)
    return [each.reason for each in result.problems]


@pytest.mark.parametrize("part", ["Backbone().features", "made().features"])
def test_a_part_of_what_nothing_else_has_belongs_to_the_network_that_gets_it(part: str) -> None:
    assert not problems(f"model = Net({part})")


@pytest.mark.parametrize(
    ("made", "in_init", "in_factory"),
    [
        ("model = Net(Backbone().features)", "\n        KEPT.append(self)", ""),
        ("model = Net(made().features)", "", "\n    KEPT.append(backbone)"),
        ("model = Net(made().features)", "", "\n    global KEPT\n    KEPT = [backbone]"),
        ("backbone = Backbone()\nmodel = Net(backbone.features)", "", ""),
        ("part = Backbone().features\nother = Net(part)\nmodel = Net(part)", "", ""),
        (
            "model = Net(Backbone().features)",
            "\n        for p in self.parameters():\n            p.requires_grad = False",
            "",
        ),
    ],
)
def test_a_part_of_what_may_be_kept_or_is_frozen_stays_where_it_was(made: str, in_init: str, in_factory: str) -> None:
    assert problems(made, in_init, in_factory)


def test_a_part_that_two_networks_get_is_in_common() -> None:
    shared = "shared = nn.Linear(4, 8)\nother = Net(shared)\nmodel = Net(shared)\n"
    second = "second = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    steps = "second.zero_grad()\nF.cross_entropy(other(x), y).backward()\nsecond.step()\n"
    assert problems(
        shared, before=f"{second}for x, y in train_loader:\n    " + steps.replace("\n", "\n    ").rstrip() + "\n"
    )
