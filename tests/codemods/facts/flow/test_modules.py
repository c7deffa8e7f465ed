"""Calls of modules, and backward passes."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided
from tests.codemods.plain.test_followed import plain, training


def test_a_call_of_the_model_is_known_with_its_model() -> None:
    found = followed(TRAINING).found
    assert [ast.unparse(call) for call in found.called_models] == ["model(x)"]


def test_a_loss_that_is_a_sum_is_scaled() -> None:
    assert reasons(TRAINING.replace("model(x), y)", "model(x), y, reduction='sum')")) == []


def test_a_loss_over_pairs_of_samples_is_a_problem() -> None:
    assert undivided(TRAINING.replace("F.cross_entropy(model(x), y)", "(model(x) @ model(x).T).exp().mean()"))


def test_a_use_in_another_file_is_said_where_it_stands() -> None:
    net = (
        "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.out = nn.Linear(4, 3)\n\n    def logits(self, x):\n        return self.out(x)\n\n"
        "    def forward(self, x):\n        return self.logits(x)\n"
    )
    train = (
        "import torch\nfrom net import Net\nfrom torch.utils.data import DataLoader, TensorDataset\n\nmodel = Net()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "data = TensorDataset(torch.rand(48, 4), torch.randint(3, (48,)))\n"
        "for x, y in DataLoader(data, batch_size=12):\n"
        "    loss = torch.nn.functional.cross_entropy(model.logits(x), y)\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    results = convert({Path("train.py"): train, Path("net.py"): net}, "cpu", style="plain")
    said = {path: [each.line for each in one.findings if "calling it" in each.message] for path, one in results.items()}
    assert said == {Path("train.py"): [], Path("net.py"): [10]}


LEFT_OUT = """\
class Inner(nn.Module):
    def forward(self, x):
        return x - x.mean(0)

class Condition(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return self.a(self.inner(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.condition = Condition()

    def forward(self, x, condition=None):
        if condition is not None:
            x = x + self.condition(condition)
        return self.out(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_layer_that_no_call_leads_to_has_no_gradients() -> None:
    found = followed(LEFT_OUT + TRAINING)
    assert not found.problems and found.found.unused
    assert undivided(LEFT_OUT + TRAINING.replace("model(x)", "model(x, x)"))


def test_a_layer_that_may_be_called_by_another_way_is_not_left_out() -> None:
    one_by_one = LEFT_OUT.replace(
        "return self.out(x)", "for c in self.children():\n            x = c(x)\n        return x"
    )
    assert undivided(one_by_one + TRAINING)
    some = one_by_one.replace("self.children()", "list(self.children())[:2]")
    assert any("not seen" in each for each in reasons(some + TRAINING))
    outside = TRAINING.replace("loss.backward()", "loss = loss + model.condition.go(x).mean()\n        loss.backward()")
    assert reasons(LEFT_OUT + outside)


@pytest.mark.parametrize("layers", ["nn.Sequential(nn.Linear(4, 4), nn.ReLU())", "nn.Linear(4, 4)"])
def test_layers_leave_samples_where_they_lie(layers: str) -> None:
    """Steps first: what is added to what went through layers has its samples along the second dimension, too."""
    net = f"""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = {layers}, nn.Linear(4, 3)
    def forward(self, x):
        x = x.unsqueeze(1).transpose(0, 1)
        x = x + self.layers(x)
        x = x + x.mean(1, keepdim=True)
        return self.out(x[0])
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    assert undivided(net + TRAINING)
    assert not undivided(net.replace("mean(1,", "mean(0,") + TRAINING)


@pytest.mark.parametrize(
    "before",
    ["", "if len(train_set) > 9:\n", "model.eval()\nfor x, y in test_loader:\n    model(x)\nmodel.train()\n"],
)
def test_an_evaluation_has_the_statistics_of_rank_0_once_something_may_have_trained(before: str) -> None:
    layers = "nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))"
    head, _, loop = training().replace("nn.Linear(4, 3)", layers, 1).partition("for epoch")
    loop = f"for epoch{loop}"
    loop = textwrap.indent(loop, "    ") if before.startswith("if") else loop
    hits = "right += (model(x).argmax(1) == y).sum().item()"
    evaluation = f"model.eval()\nright = 0\nfor x, y in test_loader:\n    {hits}\nprint(right)\n"
    code = plain(head + before + loop + evaluation).code
    assert code.count("for buffer in model.buffers():") == 1
    last = code.index("for buffer in model.buffers():")
    assert code.rindex("optimizer.step()") < last < code.rindex("for x, y in test_loader:")


def test_an_evaluation_of_what_each_rank_draws_has_the_statistics_of_rank_0() -> None:
    """A meter takes its mean over all ranks, and each goes through all of it."""
    draws = """\
class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return train_set[index][0] + torch.rand(4), train_set[index][1]
train_loader = DataLoader(Noisy(), batch_size=8, shuffle=True)
test_loader = DataLoader(Noisy(), batch_size=8)
"""
    evaluation = """\
    model.eval()
    kept = []
    with torch.no_grad():
        for x, y in test_loader:
            kept = kept + [model(x).max().item() ** 2]
    print(kept[0])
    model.train()
"""
    found = followed(draws + TRAINING + evaluation).found
    assert [ast.unparse(call) for call in found.evaluations] == ["model(x)"]


@pytest.mark.parametrize("loop", ["for a, b in test_loader:\n                print(model(a).sum().item())", ""])
def test_evaluations_within_a_loop_over_batches_of_training(loop: str) -> None:
    """They need the statistics of all ranks; a look at the batch that is trained needs none."""
    evaluates = loop or "print(model(x).sum().item())"
    source = TRAINING + f"        with torch.no_grad():\n            {evaluates}\n"
    found = followed(source).found
    loops = {place[0] for places in found.evaluations.values() for place in places if place is not None}
    assert [ast.unparse(each).partition(" in ")[2].partition(":")[0] for each in loops] == ["test_loader"] * bool(loop)
