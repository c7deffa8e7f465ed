"""Which methods and functions are the program's own."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from ddpify_codemods.facts.effects import effects
from ddpify_codemods.facts.own_methods import is_own_function, is_own_module, may_be_own
from ddpify_codemods.reading import read

from tests.codemods.checks import script_of

CLASS = """
import pathlib
import torch
from PIL import Image
from pathlib import Path
class Trainer:
    def save(self):
        pass
    def mkdir(self):
        pass
    def open(self, path):
        pass
"""


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("Image.fromarray(x).save('a.png')", False),
        ("Image.fromarray(x).convert('L').save('a.png')", False),
        ("image = Image.new('L', (1, 1))\nimage.save('a.png')", False),
        ("(Path('a') / 'b').mkdir()", False),
        ("folder = Path('a')\nfolder = folder / 'b'\nfolder.mkdir()", False),
        ("Path.cwd().parent.joinpath('a').mkdir()", True),
        ("Trainer().save('a')", True),
        ("torch.load('a.pt').save('b')", True),
        ("import hydra\nhydra.utils.instantiate(c).save('b')", True),
        ("import importlib\nimportlib.import_module('a').Net().save('b')", True),
        ("thing = Trainer() if x else Image.new('L', (1, 1))\nthing.save('b')", True),
        ("def f(thing):\n    return thing.save('a')", True),
        ("x.write_text('a')", False),
    ],
)
def test_methods_of_what_a_library_makes(source: str, own: bool) -> None:
    script = script_of(CLASS + source)
    calls = [each for each in script.find(ast.Call) if isinstance(each.func, ast.Attribute)]
    [call] = [each for each in calls if each.func.attr in ("save", "mkdir", "write_text")]  # type: ignore[attr-defined]
    assert may_be_own(script, call.func) is own


def test_functions_that_have_the_name_of_one_of_python() -> None:
    assert not is_own_function(script_of(CLASS), "open")
    assert is_own_function(script_of("def open(path):\n    pass\n"), "open")


def test_only_a_file_of_the_program_stands_for_a_library() -> None:
    script = script_of("import wandb\nclass Log:\n    def init(self):\n        wandb.init(project='a')\n")
    assert [ast.unparse(call.func) for call in effects(script)] == ["wandb.init"]
    own = replace(script, modules=frozenset({"wandb"}))
    assert is_own_module(own, "wandb.init") and effects(own) == ()


@pytest.mark.parametrize(("file", "own"), [("wandb.py", True), ("loggers/wandb.py", False)])
def test_a_file_is_known_by_what_an_import_calls_it(file: str, own: bool) -> None:
    """`import wandb` in loggers/wandb.py means the library."""
    program = {Path("train.py"): "import wandb\nwandb.init()\n", Path(file): "def init():\n    pass\n"}
    _, (train, _) = read(program)
    assert (effects(train) == ()) is own
