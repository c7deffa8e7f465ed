"""Models that are chosen by a name that only the run knows: all that may be meant are followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

HEAD = """\
import importlib
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

"""
NETS = """\


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return self.out(x)


class B(A):
    def forward(self, x):
        return {}


"""
TRAINS = """\
model = {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.rand(48, 4), torch.randint(3, (48,)))
for x, y in DataLoader(data, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
APART, COUPLED = "self.out(2 * x)", "self.out(x - x.flip(0))"
BASE = "super().forward(x - x.flip(0))"


def plain(program: str) -> str:
    path = Path("train.py")
    return convert({path: program}, "cpu", style="plain")[path].code


@pytest.mark.parametrize(
    "made", ["eval(sys.argv[1])()", "globals()[sys.argv[1]]()", 'globals()["B"]()', 'eval("B")()', "locals()[name]()"]
)
def test_the_classes_of_a_file(made: str) -> None:
    program = HEAD + NETS + "name = sys.argv[-1]\n" + TRAINS.format(made)
    assert "ddp_model(x)" in plain(program.replace("{}", APART))
    assert "ddp_model(x)" not in plain(program.replace("{}", COUPLED))


@pytest.mark.parametrize("made", ["eval(sys.argv[1])()", "A()"])
def test_what_a_class_does_of_the_one_it_is_derived_from(made: str) -> None:
    program = HEAD + NETS + TRAINS.format(made)
    assert "ddp_model(x)" in plain(program.replace("{}", "super().forward(2 * x)"))
    assert ("ddp_model(x)" in plain(program.replace("{}", BASE))) is (made == "A()")


def test_a_function_that_nothing_names_may_be_meant() -> None:
    hidden = "def make():\n    class C(A):\n        def forward(self, x):\n            return self.out(x - x.flip(0))\n"
    program = HEAD + NETS.replace("{}", APART) + hidden + "    return C()\n" + TRAINS.format("eval(sys.argv[1])()")
    assert "ddp_model(x)" not in plain(program)


@pytest.mark.parametrize("made", ['importlib.import_module("nets." + sys.argv[1])', "importlib.import_module(name)"])
@pytest.mark.parametrize("forward", [APART, COUPLED])
def test_the_files_of_a_package(made: str, forward: str) -> None:
    imports = "import torch.nn as nn\n"
    files = {
        Path("train.py"): HEAD + f"name = sys.argv[1]\nnet = {made}\n" + TRAINS.format("net.B()"),
        Path("nets/one.py"): imports + NETS.replace("{}", APART),
        Path("nets/two.py"): imports + NETS.replace("{}", forward),
        Path("nets/other.py"): "x = 1\n",
    }
    code = convert(files, "cpu", style="plain")[Path("train.py")].code
    assert ("ddp_model(x)" in code) is (forward == APART)


BUILD = """\
def build(config, kind, module, *args, **words):
    given = dict(config[kind]["args"], **words)
    return getattr(module, config[kind]["name"])(*args, **given)


config = json.load(open("config.json"))
"""


@pytest.mark.parametrize("forward", [APART, COUPLED])
def test_what_a_function_looks_up_in_a_module_that_it_is_given(forward: str) -> None:
    trains = TRAINS.format('build(config, "model", nets)')
    made = 'build(config, "optimizer", torch.optim, model.parameters())'
    trains = trains.replace("torch.optim.SGD(model.parameters(), lr=0.1)", made)
    planned = 'scheduler = build(config, "scheduler", torch.optim.lr_scheduler, optimizer)\ndata ='
    trains = trains.replace("data =", planned) + "scheduler.step()\n"
    files = {
        Path("train.py"): "import json\nimport nets\n" + HEAD + BUILD + trains,
        Path("nets.py"): "import torch.nn as nn\n" + NETS.replace("{}", forward),
    }
    code = convert(files, "cpu", style="plain")[Path("train.py")].code
    assert ("ddp_model(x)" in code) is (forward == APART)


DRAWS = """\
model.eval()
with torch.no_grad():
    out, _ = model(data.tensors[0])
    score = out.contiguous().max().item()
if score > 0.5:
    torch.save(model.state_dict(), "best.pt")
"""


@pytest.mark.parametrize("drawn", ["F.dropout(self.out(x), 0.5)", "self.out(x)"])
def test_what_one_of_several_models_draws_decides_on_no_rank_alone(drawn: str) -> None:
    nets = NETS.replace("self.out(x)", f"{drawn}, x").replace("{}", "self.out.kept, x")
    program = HEAD + nets + TRAINS.format("globals()[sys.argv[1]]()").replace("model(x)", "model(x)[0]") + DRAWS
    assert ("if from_rank_0(score > 0.5):" in plain(program)) is (drawn != "self.out(x)")


SETTINGS = """\
class Config:
    coupled, rate = False, 0.1

    def __init__(self, path):
        self.other = 1
        {set}


config = Config("settings.json")
train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=config.rate)
for x, y in DataLoader(train_set, batch_size=8, shuffle=True):
    out = model(x)
    loss = F.cross_entropy(out, y)
    if config.coupled:
        loss = loss + out.std()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("put", "known"),
    [
        ("pass", True),
        ("print(self.__dict__, vars(self).keys())", True),
        ("setattr(self, 'rate', 0.2)", True),
        ("for key, value in json.load(open(path)).items(): setattr(self, key, value)", False),
        ("self.__dict__.update(json.load(open(path)))", False),
        ("vars(self).update(json.load(open(path)))", False),
        ("self.__dict__ = json.load(open(path))", False),
        ("vars(self)[path] = True", False),
        ("given = self.__dict__; given.update(json.load(open(path)))", False),
    ],
)
def test_settings_that_a_file_may_change_are_no_constants(put: str, known: bool) -> None:
    code = plain("import json\n" + HEAD + SETTINGS.format(set=put))
    assert ("differentiable_batch(out).std()" in code) is not known
