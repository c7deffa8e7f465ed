"""Whether a call may read what another one writes."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.same_file import is_ever_used, may_be_read_by, writes_a_file

from tests.codemods.checks import script_of

IMPORTS = "import os, json, shutil, torch, numpy, cv2\nimport matplotlib.pyplot as plt\nfrom PIL import Image\n"


def both(write: str, read: str, before: str = "") -> bool:
    script = script_of(f"{IMPORTS}{before}\n{write}\n{read}\n")
    first, second = (each.value for each in script.tree.body[-2:])  # type: ignore[attr-defined]
    return may_be_read_by(script, first, script, second)


@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("torch.save(x, path)", "torch.load(other)"),
        ("torch.save(x, 'a.pth')", "os.path.exists(path)"),
        ("torch.save(x, f'{folder}/a.pth')", "torch.load(os.path.join(folder, 'b.pth'))"),
        ("open('log.txt', 'w')", "open(path)"),
        ("open(path, 'wb')", "torch.load(path)"),
        ("path.open('wb')", "torch.load(other)"),
        ("path.open('wb')", "torch.load('a.pt')"),
        ("plt.savefig(path)", "cv2.imread(path)"),
        ("torch.save(x, 'a.png')", "Image.open('a.png')"),
        ("numpy.save(path, x)", "open(path)"),
        ("torch.save(x, 'run_{}.{}'.format(1, 'pt'))", "torch.load('run_1.pt')"),
        ("torch.save(x, 'run_0.1/model.pt')", "os.listdir('run_0.1')"),
        ("torch.save(x, 'model.1')", "torch.load('model.pt')"),
        ("shutil.copyfile('x.pth', 'best.pt')", "torch.load('best.pt')"),
        ("os.replace('x.tmp', 'x.pt')", "torch.load('x.pt')"),
    ],
)
def test_a_file_that_may_be_the_same(write: str, read: str) -> None:
    assert both(write, read)


@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("torch.save(x, path)", "Image.open(other)"),
        ("torch.save(x, 'a.pth')", "open('a.json')"),
        ("torch.save(x, '%s/a.pth' % folder)", "os.path.exists(folder + '/a.txt')"),
        ("torch.save(x, '{}/a.pth'.format(folder))", "os.path.exists('a.csv')"),
        ("plt.savefig(path)", "torch.load(other)"),
        ("open(path, 'w')", "torch.load(other)"),
        ("path.open('w')", "torch.load(other)"),
        ("numpy.save(path, x)", "torch.load(other)"),
        ("shutil.copyfile(path, 'best.pth')", "open('log.txt')"),
    ],
)
def test_a_file_of_another_kind_or_name(write: str, read: str) -> None:
    assert not both(write, read)


def test_a_name_of_a_file_is_followed_to_what_it_was_given_once() -> None:
    assert not both("torch.save(x, path)", "open('a.json')", "path = 'a.pth'")
    assert both("torch.save(x, path)", "open('a.json')", "path = 'a.pth'\npath = other")


def test_a_window_is_no_file_nor_what_a_service_is_sent() -> None:
    head = "import mlflow\nimport wandb\nimport matplotlib.pyplot as plt\n"
    script = script_of(f"{head}plt.show()\nplt.savefig(a)\nwandb.log(a)\nmlflow.pytorch.save_model(model, a)\n")
    assert [writes_a_file(script, call) for call in script.find(ast.Call)] == [False, True, False, True]


def test_functions_that_nothing_names_are_never_used() -> None:
    script = script_of("def used(): pass\ndef forgotten(): pass\nclass A:\n    def method(self): pass\nused()\n")
    functions = {each.name: each for each in script.find(ast.FunctionDef)}
    assert [name for name, each in functions.items() if is_ever_used([script], each)] == ["used", "method"]
    assert is_ever_used([script], script.tree)
    by_name = script_of("def used(): pass\nglobals()['used']()\n")
    assert is_ever_used([by_name], by_name.tree.body[0])
