"""Whether what a script starts can come to a `.backward()`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ddpify_codemods.facts.reach import never_used, reached_names, reaches_backward, run_alone, unused_networks

from tests.codemods.checks import script_of

NET = script_of("def train():\n    loss.backward()\ndef idle():\n    pass", is_entry=False)


@pytest.mark.parametrize(
    ("entry", "reached"),
    [("train()", True), ("idle()", False), ("run = {'train': 1}\nloss.backward()", True), ("x = net.train", True)],
)
def test_names_lead_to_what_is_reached(entry: str, reached: bool) -> None:
    assert reaches_backward([script_of(entry), NET]) is reached


@pytest.mark.parametrize(
    ("module", "reached"),
    [
        ("def evaluate(): pass\ndef train(): loss.backward()", False),
        ("from loops import train as fit\ndef train(): loss.backward()\nfit = train", True),
        ("class Trainer(Base):\n    def train(self): loss.backward()", False),
        ("import tasks\ntasks.__dict__[name]()\ndef train(): loss.backward()", True),
        ("from fire import Fire\nFire(tasks)\ndef train(): loss.backward()", True),
        ("for _, run in inspect.getmembers(tasks): run()\ndef train(): loss.backward()", True),
        ("from operator import attrgetter\nattrgetter(name)(tasks)()\ndef train(): loss.backward()", True),
        (
            "class Base:\n    def __init_subclass__(cls): known.append(cls)\n"
            "class train(Base):\n    def __call__(self): loss.backward()\n",
            True,
        ),
        ("class train(metaclass=Registry):\n    def __call__(self): loss.backward()\n", True),
        ("@register\nclass train:\n    def __call__(self): loss.backward()\n", True),
    ],
)
def test_what_is_only_imported_is_not_used(module: str, reached: bool) -> None:
    entry = script_of("from module import evaluate, train\nevaluate()")
    assert reaches_backward([entry, script_of(module, is_entry=False)]) is reached


OTHER = """\
import torch
def loader():
    return torch.rand(3)
def train():
    loss.backward()
def main():
    train()
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("entry", "other", "alone"),
    [
        ("from other import loader\ndef train(): pass\ntrain()\nmodel.train()", OTHER, True),
        ("from other import main\nmain()", OTHER, False),
        ("from other import *", OTHER, False),
        ("import other\ngetattr(other, name)()", OTHER, False),
        ("from other import loader", OTHER.replace("return torch.rand(3)", "return train()"), False),
        ("from other import loader", OTHER.replace("return torch.rand(3)", "return globals()[name]()"), False),
        (
            "from other import loader",
            "from torchvision import models\n"
            + OTHER.replace("return torch.rand(3)", "return getattr(models, name)()"),
            True,
        ),
        (
            "from other import loader",
            "from torchvision import models\nmodels = [train]\n"
            + OTHER.replace("return torch.rand(3)", "return getattr(models, name)()"),
            False,
        ),
        ("from other import loader", OTHER.replace('if __name__ == "__main__":', "if True:"), False),
        ("from other import loader", OTHER.replace("def train", "@registered\ndef train"), False),
        ("from other import loader", OTHER.replace("train()\nif", "vars(args)\n    train()\nif"), True),
        ("from other import loader", OTHER + "@registered\nclass Kept:\n    def run(self):\n        train()\n", False),
        ("from other import loader\nimportlib.import_module('other').main()", OTHER, False),
    ],
)
def test_a_function_runs_only_when_its_file_is_started(entry: str, other: str, alone: bool) -> None:
    script = replace(script_of(other, is_entry=False), path=Path("other.py"))
    function = next(node for node in script.tree.body if getattr(node, "name", "") == "train")
    assert (function in run_alone([script_of(entry), script], script)) is alone


@pytest.mark.parametrize(
    ("between", "alone"),
    [
        ("from other import train\ndef helper(): pass\ndef main():\n    train()\n", True),
        ("from other import train\ndef helper():\n    train()\n", False),
        ("from other import train as step\ndef helper():\n    run(step)\n", False),
        ("from other import train\ndef helper():\n    inner()\ndef inner():\n    train()\n", False),
        ("from other import train as helper\n", False),
        ("from other import train\ndef helper():\n    globals()[name]()\n", False),
        ("from other import train\ndef helper(): pass\ntrain()\n", False),
        ("from other import *\ndef helper(): pass\n", False),
        ("import other\ndef helper(): pass\n", False),
        ("from other import train\ndef helper(): pass\ndef made(x=train()): pass\n", False),
        ("from other import train\ndef helper(): pass\nclass Made:\n    x = train()\n", False),
        ("def helper():\n    Kept.train()\nclass Kept:\n    from other import train\n", False),
        ("from other import train\ndef helper(): pass\nif __name__ == '__main__': pass\nelse: train()\n", False),
    ],
)
def test_what_a_file_between_takes_runs_where_the_program_comes_to_it(between: str, alone: bool) -> None:
    """A function that a file imports for the use of its own main part, which does not run."""
    other = replace(script_of(OTHER, is_entry=False), path=Path("other.py"))
    third = replace(script_of(between, is_entry=False), path=Path("between.py"))
    function = next(node for node in other.tree.body if getattr(node, "name", "") == "train")
    scripts = [script_of("from between import helper\nhelper()"), third, other]
    assert (function in run_alone(scripts, other)) is alone


def test_a_package_gives_its_names_to_its_files() -> None:
    other = replace(script_of(OTHER, is_entry=False), path=Path("kit/__init__.py"))
    third = replace(script_of("from . import train\ndef helper():\n    train()", is_entry=False), path=Path("kit/b.py"))
    function = next(node for node in other.tree.body if getattr(node, "name", "") == "train")
    assert function not in run_alone([script_of("from kit.b import helper\nhelper()"), third, other], other)


HELPERS = "def init(args):\n    dist.init_process_group('nccl')\ndef rank():\n    return 0\n"


@pytest.mark.parametrize(
    ("entry", "unused"),
    [
        ("from helpers import init, rank\nrank()", {"init"}),
        ("from helpers import init as start, rank\nrank()", set()),
        ("from helpers import init, rank\ninit(args)", {"rank"}),
        ("import helpers\nhelpers.init(args)", {"rank"}),
        ("import helpers\nrun = {'init': helpers.init}\nhelpers.rank()", set()),
        ("import helpers\ngetattr(helpers, name)()", set()),
    ],
)
def test_functions_that_nothing_names(entry: str, unused: set[str]) -> None:
    """An import alone uses nothing, unless under another name; a lookup by a computed name may use everything."""
    helpers = replace(script_of(HELPERS, is_entry=False), path=Path("helpers.py"))
    found = never_used([script_of(entry), helpers]).get(helpers, frozenset())
    assert found == unused


NETWORKS = """\
import torch.nn as nn
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)
class Own(Base):
    def __init__(self):
        super().__init__()
"""


@pytest.mark.parametrize(
    ("entry", "unused", "normalizes"),
    [
        ("from networks import Base, Net\nNet()", {"Base"}, False),
        ("from networks import Base\nBase()", {"Net"}, True),
        ("from networks import Own\nOwn()", {"Net"}, True),
        (
            "from torchvision import datasets\nfrom networks import Net\neval('datasets.' + name)(Net())",
            {"Base"},
            False,
        ),
        (
            "from torchvision import datasets\nfrom networks import Net\neval(f'datasets.{name}')(Net())",
            {"Base"},
            False,
        ),
        (
            "from torchvision import models\nfrom networks import Net\nNet(getattr(models, name)())",
            {"Base"},
            False,
        ),
        (
            "from torchvision import models\nfrom networks import Net\n"
            "def made(models):\n    getattr(models, name)()\nmade(Net())",
            set(),
            True,
        ),
        ("import networks\neval('networks.' + name)()", set(), True),
        ("import networks as n\neval('n.' + name)()", set(), True),
        ("from networks import Net\neval(name)(Net())", set(), True),
        ("from networks import Net\ndef eval(net):\n    pass\neval(Net())", {"Base"}, False),
        ("from networks import Net\nNet.__subclasses__()", set(), True),
    ],
)
def test_a_class_is_used_where_it_is_named(entry: str, unused: set[str], normalizes: bool) -> None:
    """That a constructor calls that of its base, `super().__init__()`, uses no other class."""
    scripts = [script_of(entry), replace(script_of(NETWORKS, is_entry=False), path=Path("networks.py"))]
    names = reached_names(scripts)
    assert (names is None or "BatchNorm1d" in names) is normalizes
    assert {getattr(each, "name", "") for each in unused_networks(scripts)} == unused
