"""Calls of the program's own functions, and which values differ between ranks."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.calls import differs, is_without_gradients
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided
from tests.codemods.plain.test_followed import plain, training


def test_a_decorator_without_gradients() -> None:
    decorators = ["torch.no_grad()", "torch.inference_mode()", "cache"]
    found = [is_without_gradients(ast.parse(each, mode="eval").body) for each in decorators]
    assert found == [True, True, False]


def test_values_that_differ() -> None:
    assert differs(Value("rows")) and not differs(Value())


def test_a_function_is_followed_into() -> None:
    source = "def loss_of(model, x, y):\n    return F.cross_entropy(model(x), y)\n"
    assert reasons(source + TRAINING.replace("F.cross_entropy(model(x), y)", "loss_of(model, x, y)")) == []
    pairs = source.replace("F.cross_entropy(model(x), y)", "torch.cdist(model(x), model(x)).mean()")
    assert undivided(pairs + TRAINING.replace("F.cross_entropy(model(x), y)", "loss_of(model, x, y)"))


SHAPED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return {}
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_sizes_and_dimensions_in_a_list() -> None:
    for made in (
        "self.out(x.reshape([x.shape[0], -1]))",
        "self.out(x).view([-1, 3, 1]).flatten(1)",
        "torch.reshape(self.out(x), [-1, 3])",
        "self.out(x).permute([0, 1])",
    ):
        assert undivided(SHAPED.format(made) + TRAINING) == [], made
    for made in (
        "self.out(x).view([8, 3])",
        "torch.reshape(self.out(x), [8, 3])",
        "self.out(x).permute([1, 0]).softmax(1)",
    ):
        assert undivided(SHAPED.format(made) + TRAINING), made


NAMED = """\
class Centred(nn.Module):
    def forward(self, x, y):
        return x - x.mean(0) + y[:, None]
class One(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        return self.out(x)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.centred, self.out = Centred(), nn.Linear(4, 3)
    def forward(self, x, {}):
        return self.out(self.centred(x, y)).softmax(0)
model = {{"one": One, "two": Two}}[input_name]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("parameter", "calls", "couples"),
    [
        ("y", "model(x)", False),
        ("y=None", "model(x)", True),
        ("*y", "model(x)", True),
        ("y", "model(x, y)", True),
        ("y", "model(*batch)", True),
        ("y", "(model(x, y) if epoch else model(x))", True),
    ],
)
def test_of_several_networks_those_are_called_that_take_what_is_given(
    parameter: str, calls: str, couples: bool
) -> None:
    training = TRAINING.replace("model(x)", calls).replace("        loss =", "        batch = [x, y]\n        loss =")
    assert bool(undivided(NAMED.format(parameter) + training)) is couples


DECODERS = """\
import sys
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x, steps):
        return self.out(x) * steps
class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x, steps, burn_in=False):
        return self.out(x) * (steps + burn_in)
model = Mlp() if len(sys.argv) > 5 else Rnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
BURNS_IN = """\
if len(sys.argv) > 5:
            {}
        else:
            out = model(x, 1)
        loss = F.cross_entropy(out, y)"""


@pytest.mark.parametrize(
    ("calls", "fine"),
    [
        ("out = model(x, 2, burn_in=True)", True),
        ("out = torch.zeros(len(x), 3)", False),
        ("with Quiet():\n                out = model(x, 2, burn_in=True)", False),
        ("try:\n                out = model(x, 2, burn_in=True)\n            except:\n                out = x", False),
        ("out = model(x, 2, burn_in=True)\n            out.mean().backward()", False),
    ],
)
def test_a_network_that_does_not_take_what_a_call_gives_is_not_trained_behind_it(calls: str, fine: bool) -> None:
    """No backward pass goes through it twice: where it is the model, the run has ended."""
    training = TRAINING.replace("loss = F.cross_entropy(model(x), y)", BURNS_IN.format(calls))
    found = reasons(DECODERS + training)
    assert any("two backward passes" in each for each in found) is not fine
    assert not fine or found == []


RECURSIVE = """\
class Tree(nn.Module):
    def __init__(self, level):
        super().__init__()
        self.level, self.layer = level, nn.Linear(4, 4)
        if level:
            self.left, self.right = Tree(level - 1), Tree(level - 1)

    def forward(self, x):
        x = self.layer(x)
        if not self.level:
            return x
        left, right = self.left(x), self.right(x)
        {}
        return left + right
model = nn.Sequential(Tree(depth), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    "line",
    [
        "assert left.size(1) == 4",
        "assert min((left.shape[1], right.shape[1])) == 4",
        "assert torch.cat((left, right), 1).size(1) == 8",
    ],
)
def test_what_a_model_decides_by_a_call_of_itself_says_so(line: str) -> None:
    source = "import sys\ndepth = int(sys.argv[1])\n" + RECURSIVE.format(line) + TRAINING
    found = reasons(source)
    assert found and all("calls itself" in each for each in found)


def test_what_a_model_decides_by_its_samples_beside_is_said_as_before() -> None:
    source = "import sys\ndepth = int(sys.argv[1])\n" + RECURSIVE.format("if x.max() > 9: left = left / 2") + TRAINING
    assert any("by the samples of its batch" in each for each in reasons(source))


AROUND = """\
import sys


class Deep(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.out = inner, nn.Linear(3, 3)

    def forward(self, x):
        return self.out(self.inner(x))


if sys.argv[1:]:
    model = Deep(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def fit(net):
    for x, y in train_loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
fit({})
"""


def _around(given: str) -> str:
    source = training()
    return source[: source.index("optimizer = ")] + AROUND.format(given)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("model", True),
        ("model.inner if sys.argv[2:] else model", False),
        ("[model.inner, model][len(sys.argv)]", False),
    ],
)
def test_a_network_that_may_be_put_into_another_one_of_its_name(given: str, known: bool) -> None:
    assert ("DistributedDataParallel" in plain(_around(given)).code) is known
