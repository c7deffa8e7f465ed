"""A network that is made after the ranks have drawn noise of their own begins with other numbers on each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

PROGRAM = """\
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.drop = nn.Linear(4, 3), nn.{}(0.5)

    def forward(self, x):
        return self.out(self.drop(x))


model, early = Net(), Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.rand(48, 4), torch.randint(3, (48,)))
for x, y in DataLoader(data, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{}
hits = 0
for x, y in DataLoader(data, batch_size=12):
    hits += (other(x).argmax(1) == y).sum().item()
print(hits)
"""


def plain(noise: str, made: str) -> str:
    path = Path("train.py")
    return convert({path: PROGRAM.format(noise, made)}, "cpu", style="plain")[path].code


@pytest.mark.parametrize(
    "made",
    [
        "other = Net()",
        "other = nn.Linear(4, 3)",
        "other = nn.Sequential(nn.Linear(4, 3))",
        "import os\nother = nn.Linear(4, 3)\nif os.path.exists('x.pt'):\n    other.load_state_dict(torch.load('x.pt'))",
    ],
)
def test_it_is_refused(made: str) -> None:
    assert "DistributedDataParallel" not in plain("Dropout", made)
    assert "DistributedDataParallel" in plain("ReLU", made.replace("ReLU(0.5)", "ReLU()"))


@pytest.mark.parametrize(
    "made",
    [
        "other = Net()\nother.load_state_dict(model.state_dict())",
        "other = copy.deepcopy(model)",
        "other = early",
        "if len(data) > 9:\n    other = Net()\n    other.load_state_dict(model.state_dict())\nelse:\n    other = early",
    ],
)
def test_one_with_the_numbers_of_another_is_the_same_on_all(made: str) -> None:
    assert "DistributedDataParallel" in plain("Dropout", made)


def test_the_wrapper_makes_those_alike_that_are_trained() -> None:
    loop = PROGRAM[PROGRAM.index("optimizer") :].replace("{}\n", "").replace("other(x)", "model(x)")
    data = "data = TensorDataset(torch.rand(48, 4), torch.randint(3, (48,)))\n"
    loop = loop.replace("in DataLoader(data, batch_size=12, shuffle=True)", "in loader").replace("\n", "\n    ")
    loop = loop.replace(f"{data}    ", "")  # each rank would draw another one
    head = PROGRAM[: PROGRAM.index("model, early")].format("Dropout")
    head += "loader = DataLoader(data, batch_size=12, shuffle=True)\n\n\ndef run():\n    model = Net()\n    "
    head = head.replace("loader =", f"{data}loader =")
    path = Path("train.py")
    source = head + loop + "\n\nfor fold in range(3):\n    run()\n"
    assert "DistributedDataParallel" in convert({path: source}, "cpu", style="plain")[path].code


@pytest.mark.parametrize("made", ["Net.from_pretrained(folder)", "Net.from_config(config)"])
def test_one_with_the_numbers_of_a_file_is_the_same_on_all(made: str) -> None:
    program = PROGRAM.replace("(nn.Module)", "(BertPreTrainedModel)").replace(
        "__init__(self)", "__init__(self, config)"
    )
    program = "from transformers import BertPreTrainedModel\n" + program.replace("__init__()", "__init__(config)")
    models = "config, folder = None, '.'\nmodel = Net.from_pretrained(folder)"
    program = program.replace("model, early = Net(), Net()", models)
    path = Path("train.py")
    code = convert({path: program.format("Dropout", f"other = {made}")}, "cpu", style="plain")[path].code
    assert ("DistributedDataParallel" in code) is ("from_pretrained" in made)


AGAIN = """\
{}
for x, y in DataLoader(data, batch_size=12, shuffle=True):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
other = model
"""


@pytest.mark.parametrize(
    ("made", "is_alike"),
    [
        ("model.load_state_dict(Net().state_dict())", False),
        ("fresh = Net()\nstate = copy.deepcopy(fresh.state_dict())\nmodel.load_state_dict(state)", False),
        ("fresh = Net()\nmodel.load_state_dict({k: 0.1 * v for k, v in fresh.state_dict().items()})", False),
        ("model.load_state_dict(early.state_dict())", True),
        ("fresh = Net()\nfresh.load_state_dict(model.state_dict())\nmodel.load_state_dict(fresh.state_dict())", True),
        ("print(len(Net().state_dict()))", True),
    ],
)
def test_a_trained_model_that_gets_its_numbers_is_refused(made: str, is_alike: bool) -> None:
    assert ("DistributedDataParallel" in plain("Dropout", AGAIN.format(made))) is is_alike
