"""Calls of the program's own functions, and which values differ between ranks."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.calls import differs, is_without_gradients
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided


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
