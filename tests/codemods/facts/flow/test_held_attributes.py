"""Models that an object is given in its `__init__` alone, by other words than its own."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped

BARE = HEAD.partition("model =")[0] + "total = 0\n"
TRAINER = """\
class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        model = self.model
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            self.optimizer.step()


"""
GIVEN = TRAINER.replace("(self)", "(self, net)", 1).replace("nn.Linear(4, 3)", "net").replace("self.model.p", "net.p")
TRAINING = """\
for x, y in train_loader:
    trainer.optimizer.zero_grad()
    F.cross_entropy(trainer.model(x), y).backward()
    trainer.optimizer.step()
"""
CACHE = """\
class Cache:
    def __init__(self, net):
        self.model = net

    def save(self):
        torch.save(self.model, "net.pt")


"""
CACHED = CACHE + GIVEN.replace("        self.model =", "        self.cache = Cache(net)\n        self.model =")
NET = """\
class Net(nn.Sequential):
    def train(self, mode=True):
        return self[0]


"""
RESET = "    def reset(self):\n        self.model = nn.Linear(4, 3)\n\n\n"


@pytest.mark.parametrize(
    ("source", "called"),
    [
        (TRAINER + "Trainer().fit()\n", "self.ddp_model"),
        (GIVEN + "Trainer(nn.Linear(4, 3)).fit()\n", "self.ddp_model"),
        (TRAINER.replace("model = self.model", "model = self.model.train()") + "Trainer().fit()\n", "self.ddp_model"),
        (TRAINER.replace("model = self.model", "model = self.model.eval()") + "Trainer().fit()\n", "self.ddp_model"),
        (CACHED + "Trainer(nn.Linear(4, 3)).fit()\n", "self.ddp_model"),
        (TRAINER + "trainer = Trainer()\n" + TRAINING, "trainer.ddp_model"),
        (
            TRAINER + "class Other:\n    def reset(self):\n        self.model = 1\n\n\nTrainer().fit()\n",
            "self.ddp_model",
        ),
    ],
)
def test_the_wrapper_is_called_as_an_attribute(source: str, called: str) -> None:
    found = wrapped(source, BARE)
    assert not found.problems and {name for _, name in found.calls.values()} == {called}


@pytest.mark.parametrize(
    "source",
    [
        TRAINER + RESET + "trainer = Trainer()\ntrainer.fit()\ntrainer.reset()\ntrainer.fit()\n",
        TRAINER + "trainer = Trainer()\nif total:\n    trainer.model = nn.Linear(4, 3)\ntrainer.fit()\n",
        TRAINER.replace("model = self.model\n", "model = self.model\n        if total:\n            model = None\n")
        + "Trainer().fit()\n",
        NET
        + TRAINER.replace("model = self.model", "model = self.model.train()").replace(
            "self.model = nn.Linear(4, 3)", "self.model = Net(nn.Linear(4, 3))"
        )
        + "Trainer().fit()\n",
        TRAINER.replace("model = self.model\n", "model = self.model\n        import os as model\n")
        + "Trainer().fit()\n",
        TRAINER.replace("fit(self)", "fit(self, model=None)") + "Trainer().fit()\n",
        TRAINER + "first, trainer = Trainer(), Trainer()\n" + TRAINING,
        TRAINER + "trainer = Trainer()\nif total:\n    trainer = Trainer()\n" + TRAINING,
        TRAINER + "class Box:\n    def __init__(self):\n        self.model = 1\n\n\ntrainer = Trainer()\n" + TRAINING,
        TRAINER.replace("class Trainer:", "class Base:").replace(
            "def fit", "def load(self):\n        pass\n\n    def fit"
        )
        + RESET.replace("    def reset", "class Trainer(Base):\n    def fit_all", 1)
        + "trainer = Trainer()\ntrainer.fit()\ntrainer.fit_all()\ntrainer.fit()\n",
    ],
)
def test_what_may_be_another_model_is_not_followed(source: str) -> None:
    found = wrapped(source, BARE)
    assert found.problems or not found.calls


@pytest.mark.parametrize(
    ("source", "is_followed"),
    [
        (GIVEN.replace("        self.optimizer =", "        net.bias = None\n        self.optimizer ="), False),
        (GIVEN.replace("        self.optimizer =", "        net.train()\n        self.optimizer ="), True),
    ],
)
def test_layers_by_the_name_that_a_kept_model_came_by(source: str, is_followed: bool) -> None:
    assert bool(wrapped(source + "Trainer(nn.Linear(4, 3)).fit()\n", BARE).calls) is is_followed


@pytest.mark.parametrize(
    ("between", "behind", "is_followed"),
    [("", "", True), ("net.bias = None\n", "", False), ("", "print(vars(net))\ntest(net)\n", True)],
)
def test_layers_by_the_name_that_the_caller_has(between: str, behind: str, is_followed: bool) -> None:
    trainer = GIVEN.replace("        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n", "")
    optimizer = "trainer.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    made = f"def test(m):\n    m.eval()\n\n\nnet = nn.Linear(4, 3)\ntrainer = Trainer(net)\n{between}{optimizer}"
    found = wrapped(f"{trainer}{made}trainer.fit()\n{behind}", BARE)
    assert bool(found.calls) is is_followed and bool(found.problems) is not is_followed
