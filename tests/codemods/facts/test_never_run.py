"""What an imported file holds that a program never runs."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.never_run import never_run

from tests.codemods.checks import script_of

KEPT = """\
import abc
import torch
class Base:
    def save(self):
        torch.save(self, "x")
    def load(self):
        return self.restore()
    def restore(self):
        return 0
class Made(Base):
    def show(self):
        print(self)
class Net(torch.nn.Module):
    def forward(self, x):
        return x
    def extra_repr(self):
        return "net"
def run():
    return Made().load()
def other():
    return Net()
"""


@pytest.mark.parametrize(
    ("entry", "alone"),
    [
        ("from kept import run\nrun()", {"Net", "other", "save", "show"}),
        ("from kept import Made\nMade()", {"Net", "load", "other", "run", "save", "show"}),
        ("from kept import Made\nMade().save()", {"Net", "load", "other", "run", "show"}),
        ("from kept import Made\ngetattr(Made(), 'show')()", {"Net", "load", "other", "run", "save"}),
        ("from kept import Made\ngetattr(Made(), name)()", {"Net", "other", "run"}),
        ("from kept import other\nother()\ntorch.save(3)", {"Made", "load", "run", "save"}),
        ("import kept\nkept.run()", {"save", "show"}),
        ("from kept import *\nrun()", {"save", "show"}),
        ("from kept import run\nhydra.utils.instantiate(settings)", {"other"}),
    ],
)
def test_what_nothing_calls(entry: str, alone: set[str]) -> None:
    kept = replace(script_of(KEPT, is_entry=False), path=Path("kept.py"))
    scripts = [script_of("import torch\n" + entry), kept]
    assert {node.name for node in never_run(scripts, kept)} == alone  # type: ignore[attr-defined]
    assert not never_run(scripts, scripts[0])


@pytest.mark.parametrize(
    "head",
    [
        "@register\nclass Kept:",
        "class Kept(metaclass=Meta):",
        "class Kept(Told):",
        "class Kept(threading.Thread):",
        "class Kept:\n    def __getattr__(self, name): return 0",
    ],
)
def test_classes_that_are_told_of(head: str) -> None:
    told = "class Told:\n    def __init_subclass__(cls): known.append(cls)\n"
    source = f"import threading\n{told}{head}\n    def run(self): pass\n"
    kept = replace(script_of(source + "def start(): pass", is_entry=False), path=Path("kept.py"))
    found = never_run([script_of("from kept import start\nstart()"), kept], kept)
    assert not any(isinstance(node, ast.ClassDef) and node.name == "Kept" for node in found)


TRAIN = """\
import torch
from kept import Made
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
Made().show()
"""


@pytest.mark.parametrize("used", [False, True])
def test_what_other_programs_run_stays(used: bool) -> None:
    """Plain code needs a process group, which another program that saves does not join."""
    files = {Path("train.py"): TRAIN + "Made().save()\n" * used, Path("kept.py"): KEPT}
    results = convert(files, "cpu", style="plain")
    assert results[Path("train.py")].changes
    assert bool(results[Path("kept.py")].changes) is used
