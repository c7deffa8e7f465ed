"""Which names hold the wrapper."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped
from tests.codemods.plain.test_followed import plain, refusals

TRAIN = """\
def train(network, optimizer):
    network.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(network(x), y).backward()
        optimizer.step()
    {after}


train(model, optimizer)
"""


def test_a_parameter_of_the_function_that_trains_takes_the_wrapper() -> None:
    found = wrapped(TRAIN.format(after="pass"))
    assert not found.problems and not found.modules
    assert [(name, model.name) for (_, name), model in found.parameters.items()] == [("network", "ddp_model")]
    (node,) = found.calls
    assert ast.unparse(found.models[0].script.parents[node]) == "train(model, optimizer)"


def test_what_a_wrapper_does_not_have_is_the_models() -> None:
    found = wrapped(TRAIN.format(after="print(network.weight)"))
    assert not found.problems
    assert [ast.unparse(found.models[0].script.parents[node]) for node in found.modules] == ["network.weight"]


def test_another_value_for_the_parameter_is_a_problem() -> None:
    found = wrapped(TRAIN.format(after="network = nn.Linear(4, 3)"))
    assert ["given another value" in each.reason for each in found.problems] == [True]


LOAD = """\
def load(path, network, optimizer):
    network.load_state_dict(torch.load(path))
    {0}


"""
LOADS = "network, optimizer, start = load('a.pt', network, optimizer)"
LOADED = "return network, optimizer, 0"


@pytest.mark.parametrize(
    ("loaded", "loads"),
    [
        (LOADED, LOADS),
        (LOADED, f"if optimizer:\n        {LOADS}"),
        (LOADED, f"for _ in range(2):\n        {LOADS}"),
        ("return network", "network = load('a.pt', network, optimizer)"),
        ("return network", "network = load(network=network, optimizer=optimizer, path='a.pt')"),
    ],
)
def test_a_function_that_gives_back_the_model_leaves_its_wrapper_where_it_is(loaded: str, loads: str) -> None:
    found = wrapped(LOAD.format(loaded) + TRAIN.format(after=loads))
    script = found.models[0].script
    assert not found.problems
    assert [ast.unparse(script.statement(node)) for node in found.returned] == [loads.rpartition("    ")[2]]


@pytest.mark.parametrize(
    ("loaded", "loads"),
    [
        ("return nn.Linear(4, 3), optimizer, 0", LOADS),
        (f"if path:\n        return nn.Linear(4, 3), optimizer, 0\n    {LOADED}", LOADS),
        (f"if path:\n        {LOADED}", LOADS),
        (f"network = nn.Sequential(network)\n    {LOADED}", LOADS),
        (f"network = nn.DataParallel(network)\n    {LOADED}", LOADS),
        (LOADED, f"_ = 1\n    {LOADS}\n    print(_)"),
        (LOADED, f"def again(network):\n        {LOADS}\n        return network\n    again(nn.Linear(4, 3))"),
        (LOADED, "read = load\n    network, optimizer, start = read('a.pt', network, optimizer)"),
        (LOADED, "other = nn.Linear(4, 3)\n    network, optimizer, start = load('a.pt', other, optimizer)"),
    ],
)
def test_a_name_that_may_get_another_model_is_refused(loaded: str, loads: str) -> None:
    """The Sequential is not trained by the optimizer, and the loss is seen to be made by none that is."""
    source = LOAD.format(loaded) + TRAIN.format(after=loads)
    assert not wrapped(source).returned and refusals(plain(HEAD + source))


def test_a_name_that_gets_another_model_does_not_hold_the_first_wrapper() -> None:
    again = """\
def step(network, optimizer):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(network(x), y).backward()
        optimizer.step()


model = nn.Linear(4, 3)
first = torch.optim.SGD(model.parameters(), lr=0.1)
step(model, first)
model = nn.Linear(4, 3)
second = torch.optim.SGD(model.parameters(), lr=0.1)
step(model, second)
"""
    found = wrapped(again, HEAD.partition("model =")[0])
    assert [each.model for each in found.models] == ["model"]
    assert [ast.unparse(at).partition(" = ")[0] for at in found.models[0].at] == ["first", "second"]


FIT = """\
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            self.loss(x, y).backward()
            self.optimizer.step()


class Classifier(Trainer):
    def loss(self, x, y):
        return F.cross_entropy(self.net(x), y)
"""
DEEPER = "\n\nclass Deeper(Classifier):\n    pass\n\n\nDeeper().fit()\n"


@pytest.mark.parametrize("end", ["\n\nClassifier().fit()\n", DEEPER])
def test_a_derived_class_knows_the_wrapper_of_the_one_above_it(end: str) -> None:
    found = wrapped(FIT + end, HEAD.partition("model =")[0])
    assert not found.problems
    assert [(ast.unparse(node), name) for node, (_, name) in found.calls.items()] == [("self.net", "self.ddp_net")]


def test_a_class_that_sets_the_attribute_does_not() -> None:
    end = "\n    def fit(self):\n        self.net = nn.Linear(4, 3)\n        super().fit()\n\n\nClassifier().fit()\n"
    found = wrapped(FIT + end, HEAD.partition("model =")[0])
    assert found.problems and not found.calls


@pytest.mark.parametrize(
    "again", ["nn.DataParallel(network)", "nn.DataParallel(network, device_ids=[0])", "nn.DataParallel(network).cuda()"]
)
def test_a_parameter_that_goes_into_dataparallel_holds_the_wrapper(again: str) -> None:
    found = wrapped(TRAIN.format(after="pass").replace("    network.train()", f"    network = {again}"))
    assert not found.problems and not found.modules


@pytest.mark.parametrize(
    "again",
    [
        "network = nn.DataParallel(nn.Linear(4, 3))",
        "network = nn.DataParallel(network.body)",
        "network = nn.DataParallel(copy.deepcopy(network))",
        "network = nn.DataParallel(network).module.body",
        "network = nn.DataParallel(network).half()",
        "network = DataParallel(network)",  # its own
        "network = nn.Sequential(nn.DataParallel(network), nn.Softmax(1))",
        "other, network = network, nn.DataParallel(network)",
    ],
)
def test_what_is_not_the_model_in_dataparallel_is_another_value(again: str) -> None:
    source = HEAD + TRAIN.format(after="pass").replace("    network.train()", f"    {again}")
    assert refusals(plain(f"import copy\n{source}"))
