"""Which folders a file puts on sys.path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ddpify_codemods.search_path import added_folders

IMPORTS = """\
import os, sys, site, inspect
import os.path as osp
from os.path import dirname, abspath
from pathlib import Path
from sys import path as search_path
"""


def found(folder: Path, text: str, here: str = "") -> list[str]:
    """What a script in examples/mnist adds; a "+" marks what comes before the script's own folder."""
    for name in ("examples/mnist/lib", "models", "elsewhere"):
        (folder / name).mkdir(parents=True)
    script = folder / "examples" / "mnist" / "train.py"
    added = added_folders(script, IMPORTS + text, folder / (here or "examples/mnist"))
    return ["+" * each.first + os.path.relpath(each.folder, folder) for each in added]


@pytest.mark.parametrize(
    "text",
    [
        "sys.path.append('../..')",
        "sys.path.append(os.path.join('..', '..'))",
        "sys.path.append(os.path.join(os.path.dirname(__file__), '..', '..'))",
        "sys.path.append(osp.join(osp.dirname(osp.realpath(__file__)), os.pardir + '/' + os.pardir))",
        "sys.path.append(dirname(dirname(dirname(abspath(__file__)))))",
        "sys.path.append(os.path.dirname(__file__) + '/../..')",
        "sys.path.append(f'{os.path.dirname(__file__)}/../..')",
        "sys.path.append(str(Path(__file__).resolve().parents[2]))",
        "sys.path.append(str(Path(__file__).parent.parent.parent))",
        "sys.path.append((Path(__file__).absolute().parent / '..' / '..').as_posix())",
        "sys.path.append(os.path.split(os.path.dirname(os.path.dirname(__file__)))[0])",
        "sys.path.append(os.path.abspath(os.path.join(sys.path[0], '../..')))",
        "sys.path.append(os.path.dirname(sys.argv[0]) + '/../..')",
        "sys.path.append(os.getcwd() + '/../..')",
        "sys.path.append(dirname(abspath(inspect.getfile(inspect.currentframe()))) + '/../..')",
        "sys.path += ['../..']",
        "sys.path.extend(['../..'])",
        "site.addsitedir('../..')",
        "search_path.append('../..')",
        "ROOT = Path(__file__).resolve().parents[2]\nif str(ROOT) not in sys.path:\n    sys.path.append(str(ROOT))",
        "def add(path):\n    if path not in sys.path:\n        sys.path.append(path)\nadd(osp.join('..', '..'))",
        "for place in ['../..']:\n    sys.path.append(place)",
        "os.chdir('..')\nsys.path.append('..')",
    ],
)
def test_the_folder_two_above(tmp_path: Path, text: str) -> None:
    assert "." in found(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "sys.path.insert(0, 'lib')",
        "sys.path = ['lib'] + sys.path",
        "sys.path[0:0] = ['lib']",
        "sys.path[0] = 'lib'",
    ],
)
def test_in_front(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == ["+examples/mnist/lib"]


def test_relative_to_where_one_stands_or_goes(tmp_path: Path) -> None:
    assert found(tmp_path, "sys.path.append('models')", here=".") == ["models"]
    gone = found(tmp_path / "again", "os.chdir(dirname(__file__))\nsys.path.append('lib')", here=".")
    assert gone == ["examples/mnist/lib"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sys.path.append('nowhere')",
        "sys.path.append(args.root)",
        "sys.path.append(os.environ['ROOT'])",
        "print(sys.path)",
        "paths.append('../..')",
        "sys.path.append(",
        "a = b\nb = a\nsys.path.append(a)",
        "x = ''\n" + "x = os.path.join(x, x)\n" * 40 + "sys.path.append(x + 'no')",
    ],
)
def test_nothing_that_is_there(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []
