"""The models whose parameters optimizers are given."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.models_of_optimizers import given_by_callers, given_models, kept_by_object
from ddpify_codemods.facts.flow.program import Program
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING

BARE = HEAD.partition("model =")[0]
MADE = "model = nn.Linear(4, 3)\n"


def program(source: str) -> Program:
    (script,) = in_program([script_of(BARE + source)])
    assert script.program is not None
    return script.program


def test_an_optimizer_that_is_made_is_one_and_another_is_none() -> None:
    made = program(
        f"{MADE}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{TRAINING}"
        "def never():\n    return torch.optim.SGD(model.parameters(), lr=0.1)\n"
    )
    assert [base.code for _, _, base in given_models(made)] == ["model"]


def test_a_model_as_the_callers_know_it() -> None:
    source = (
        f"def made(network):\n    return torch.optim.SGD(network.parameters(), lr=0.1)\n{MADE}"
        f"optimizer = made(model)\n{TRAINING}"
    )
    followed = program(source)
    bases = [*given_models(followed)]
    assert [base.code for _, _, base in bases] == ["network"]
    assert [base.code for _, _, base in given_by_callers(followed, bases)] == ["model"]


def test_a_model_as_an_object_keeps_it() -> None:
    source = f"""\
class Trainer:
    def __init__(self, network):
        self.network = network
        self.seen = 0

    def fit(self, optimizer):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(self.network(x), y).backward()
            optimizer.step()


{MADE}Trainer(model).fit(torch.optim.SGD(model.parameters(), lr=0.1))
"""
    ((_, optimizer, base),) = kept_by_object(program(source))
    assert base.code == "self.network" and ast.unparse(optimizer.call) == "self.seen = 0"


def test_a_model_that_an_object_puts_in_a_wrapper_for_several_gpus() -> None:
    source = """\
class Trainer:
    def __init__(self, cuda):
        network = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        self.network, self.optimizer = network, optimizer
        if cuda:
            self.network = torch.nn.DataParallel(self.network).cuda()
        self.seen = 0

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.network(x), y).backward()
            self.optimizer.step()


Trainer(False).fit()
"""
    ((_, optimizer, base),) = kept_by_object(program(source))
    assert base.code == "self.network" and ast.unparse(optimizer.call) == "self.seen = 0"
    assert not kept_by_object(program(source.replace("torch.nn.DataParallel(self.network)", "Other(self.network)")))


TWO = """\
def load(path, net, optimizer):
    net.load_state_dict(torch.load(path))
    return net, optimizer


class Trainer:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.optimizer.step()
        self.net, self.optimizer = load("a.pt", self.net, self.optimizer)


class Distiller:
    def __init__(self, net, student, optimizer):
        self.net = net
        self.student = student
        self.optimizer = optimizer

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.student(x) + self.net(x).detach(), y).backward()
            self.optimizer.step()


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


first, second = nn.Linear(4, 3), nn.Linear(4, 3)
Trainer(first, sgd(first)).fit()
Distiller(first, second, sgd(second)).fit()
"""


def test_models_that_objects_of_several_classes_keep() -> None:
    kept = kept_by_object(program(TWO))
    assert [base.code for _, _, base in kept] == ["self.net", "self.student"]
    assert not kept_by_object(program(TWO.replace("class Distiller:", "class Distiller(Trainer):")))
    assert not kept_by_object(program(TWO + "Trainer(first, sgd(first)).net = second\n"))
    loads = "class Loads:\n    def swap(self, net):\n        self.net = net\n\n\n"
    mixed = TWO.replace("class Trainer:", f"{loads}class Base:").replace(
        "class Distiller:", "class Trainer(Base, Loads):\n    pass\n\n\nclass Distiller:"
    )
    assert not kept_by_object(program(mixed))


INHERITED = f"""\
class Base:
    def __init__(self, net):
        self.net = net
        self.best = 0


class Trainer(Base):
    def __init__(self, net, optimizer):
        super().__init__(net)
        self.optimizer = optimizer

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.optimizer.step()


{MADE}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
Trainer(model, optimizer).fit()
"""
AGAIN = """\
other = nn.Linear(4, 3)
LINE(other, torch.optim.SGD(other.parameters(), lr=0.1)).fit()
"""
SIBLING = "class Sibling(Base):\n    def __init__(self, net, optimizer):\n        super().__init__(net)\n\n\nmodel ="


@pytest.mark.parametrize("behind", ["", "self.net.apply(print)\n        ", "self.net_shadow.register()\n        "])
def test_a_model_as_a_base_class_keeps_it(behind: str) -> None:
    source = INHERITED.replace("self.optimizer =", f"{behind}self.optimizer =")
    ((_, optimizer, base),) = kept_by_object(program(source))
    assert base.code == "self.net" and ast.unparse(optimizer.call) == "self.best = 0"


@pytest.mark.parametrize(
    "source",
    [
        INHERITED + AGAIN.replace("LINE", "Trainer"),
        INHERITED.replace("model =", SIBLING, 1) + "Sibling(nn.Linear(4, 3), optimizer)\n",
        INHERITED.replace("self.optimizer = optimizer", "self.optimizer, self.net = optimizer, net"),
        INHERITED.replace("self.optimizer =", "self.net.extra = nn.Linear(4, 3)\n        self.optimizer ="),
        INHERITED.replace("self.optimizer =", "self.net.layers.append(nn.Linear(4, 3))\n        self.optimizer ="),
        INHERITED.replace("self.best = 0", "self.net.bias = nn.Parameter(torch.zeros(3))"),
        INHERITED.replace("        for x, y", "        self.net = self.net.half()\n        for x, y"),
        INHERITED.replace("self.best = 0", "self.best = 0\n\n    def grow(self):\n        self.net = nn.Linear(4, 3)"),
        INHERITED.replace(".fit()", "").replace("Trainer(model", "trainer = Trainer(model")
        + "trainer.net = nn.Linear(4, 3)\ntrainer.fit()\n",
    ],
)
def test_a_model_that_may_be_another_one_than_a_base_class_keeps(source: str) -> None:
    assert not kept_by_object(program(source))


HELPED = f"""\
def compute(network, x, y):
    return F.cross_entropy(network(x), y)


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            compute(self.model, x, y).backward()
            self.optimizer.step()


{MADE}Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1)).fit()
"""


def test_a_model_that_an_object_gives_to_the_function_that_calls_it() -> None:
    held = HELPED.replace("        for x, y", "        net = self.model\n        for x, y").replace(
        "compute(self.model", "compute(net"
    )
    for source in (HELPED, held):
        ((_, _, base),) = kept_by_object(program(source))
        assert base.code == "self.model"
    assert not kept_by_object(program(HELPED + "compute(model, *next(iter(train_loader))).backward()\n"))
    assert not kept_by_object(program(HELPED.replace("compute(self.model, x, y)", "compute(*(self.model, x, y))")))


def test_a_model_that_is_moved_and_put_in_a_wrapper_for_several_gpus() -> None:
    wraps = "self.model = model.to(x)\n        if x:\n            self.model = torch.nn.DataParallel(model)"
    source = HELPED.replace("self.model = model", wraps, 1).replace("class Trainer", "x = 0\n\n\nclass Trainer")
    ((_, _, base),) = kept_by_object(program(source))
    assert base.code == "self.model"
    assert not kept_by_object(program(source.replace("DataParallel(model)", "DataParallel(nn.Linear(4, 3))")))


def test_parameters_that_are_frozen_behind_the_attribute_have_no_wrapper_there() -> None:
    frozen = "self.model = model\n        for p in self.model[0].parameters():\n            p.requires_grad = False"
    source = HELPED.replace("self.model = model", frozen, 1)
    above = source.replace("self.optimizer = optimizer", "self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    assert kept_by_object(program(HELPED))
    assert not kept_by_object(program(above))
