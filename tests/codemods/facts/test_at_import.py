"""What the imports at the top of a program's first file run."""

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.at_import import run_at_import
from ddpify_codemods.reading import read


def runs(train: str, **files: str) -> set[str]:
    """The calls that the imports run, each with the line of its import."""
    program = {Path("train.py"): train}
    program |= {Path(f"{name.replace('__', '/', 1)}.py"): text for name, text in files.items()}
    _, scripts = read(program)
    found = run_at_import(scripts)
    return {f"{at.lineno} {ast.unparse(node)}" for at, _, node in found if isinstance(node, ast.Call)}


DOES = [
    ("made()\n", {"1 made()"}),
    ("if True:\n    made()\n", {"1 made()"}),
    ("def make():\n    return inner()\n\n\nmake()\n", {"1 make()", "1 inner()"}),
    ("def make(a=given()):\n    return inner()\n", {"1 given()"}),
    ("@decorator(1)\ndef make():\n    return inner()\n", {"1 decorator(1)"}),
    ("class A:\n    b = made()\n\n    def __init__(self):\n        inner()\n", {"1 made()"}),
    ("class A:\n    def __init__(self):\n        inner()\n\n\nA()\n", {"1 A()", "1 inner()"}),
    ("later = lambda: made()\n", set()),
    ("if __name__ == '__main__':\n    made()\n", set()),
    ("import os\n\n\ndef join():\n    inner()\n\n\nos.path.join('a')\n", {"1 os.path.join('a')"}),
]


@pytest.mark.parametrize(("own", "expected"), DOES)
def test_what_a_file_runs_when_it_is_imported(own: str, expected: set[str]) -> None:
    assert runs("import beside\n\nwork()\n", beside=own) == expected


@pytest.mark.parametrize(
    "head", ["import beside\n", "from beside import *\n", "try:\n    import beside\nexcept ImportError:\n    pass\n"]
)
def test_however_it_is_imported(head: str) -> None:
    own = "made()\n"
    assert {each.partition(" ")[2] for each in runs(f"{head}\nwork()\n", beside=own)} == {"made()"}


def test_by_way_of_other_files_and_packages() -> None:
    files = {"pack____init__": "from .inner import a\n", "pack__inner": "a = made()\n", "pack__other": "b = other()\n"}
    assert runs("import json\nimport pack.other\n\nwork()\n", **files) == {"2 made()", "2 other()"}
    assert runs("from first import a\n\nwork()\n", first="import second\na = 1\n", second="b = made()\n") == {
        "1 made()"
    }


def test_functions_of_another_file() -> None:
    called = "def make():\n    return inner()\n"
    assert runs("import a\n\nwork()\n", a="import b\nb.make()\n", b=called) == {"1 b.make()", "1 inner()"}


def test_what_the_file_itself_does_is_left_out() -> None:
    assert runs("work()\nimport beside\n", beside="made()\n") == set()
    assert runs("def main():\n    import beside\n\n\nmain()\n", beside="made()\n") == set()
