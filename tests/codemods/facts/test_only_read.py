"""HDF5 files that are opened to be read and written, and are only read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.only_read import mode_to_read
from ddpify_codemods.rules.convert.files_to_read import RULE

from tests.codemods.checks import script_of

LOAD = """\
import h5py
import numpy as np
def load(path):
    file = h5py.File(path, "r+")
    {}
    return x
"""


def modes(source: str) -> list[bool]:
    """Of each file that is opened, whether it may be opened to be read."""
    script = script_of(source)
    calls = [each for each in script.find(ast.Call) if ast.unparse(each.func).endswith("File")]
    return [mode_to_read(script, each) is not None for each in calls]


@pytest.mark.parametrize(
    "body",
    [
        'x = file["x"][:]',
        'x = file["x"][:].astype("float32")\n    file.close()',
        'x = file["x"][()], file["y"][..., 2:], np.array(file["z"])',
        "x = {key: file[key][:] for key in file.keys()}",
    ],
)
def test_a_file_of_which_arrays_are_taken_is_only_read(body: str) -> None:
    assert modes(LOAD.format(body)) == [True]


def test_files_that_are_read_in_a_block_or_where_they_are_opened() -> None:
    block = 'def load(path):\n    with h5.File(path, mode="r+") as file:\n        return file["x"][:]\n'
    at_once = 'x = h5.File("a", "r+")["x"][:]\n'
    assert modes("import h5py as h5\n" + block + at_once) == [True, True]


@pytest.mark.parametrize(
    "body",
    [
        'x = file["x"]',  # what is done with it is not seen: `x[:] = 0`
        'x = file["x"][0]',  # a data set, where that is a group with such a name
        'x = file["x"][:]\n    file["x"][:] = 0',
        'x = file["x"][:]\n    file["x"][:] += 1',
        'x = file["x"][:]\n    file["y"] = x',
        'x = file["x"][:]\n    del file["x"]',
        'x = file["x"][:]\n    file.attrs["seen"] = 1',
        'x = file["x"][:]\n    file.create_dataset("y", data=x)',
        'x = file["x"][:]\n    clean(file)',
        'x = file["x"][:]\n    other = file',
        'x = file["x"][:]\n    write = file.create_dataset',
        "x = file",
        "x = [file]",
        'x = file["x"][:]\n    def clean():\n        file["x"][:] = 0\n    clean()',
        'global file\n    x = file["x"][:]',
        'x = file["x"][:]\n    h5py.File(path, "a")["x"][:] = 0',  # it may be the same file
        'x = file["x"][:]\n    h5py.File(path, mode)["x"]',
        'x = file["x"][:]\n    h5py.File(*path)["x"][:] = 0',
        'x = file["x"][:]\n    h5py.File(path, **how)["x"][:] = 0',
    ],
)
def test_a_file_that_may_be_written_stays_as_it_is(body: str) -> None:
    assert not any(modes(LOAD.format(body)))


@pytest.mark.parametrize(
    "source",
    [
        'file = h5py.File("a", "r+")\nx = file["x"][:]',  # another module may write it
        'class Data:\n    def __init__(self):\n        self.file = h5py.File("a", "r+")\n        self.file["x"][:]',
        'def load(path):\n    file = h5py.File(path, "a")\n    return file["x"][:]',  # makes the file
        'def load(path):\n    file = h5py.File(path, "r+", driver="core")\n    return file["x"][:]',
        'def load(path):\n    file = other = h5py.File(path, "r+")\n    return file["x"][:]',
        'def load(path, mode="r+"):\n    file = h5py.File(path, mode)\n    return file["x"][:]',
    ],
)
def test_a_file_of_which_not_all_is_seen_stays_as_it_is(source: str) -> None:
    assert modes("import h5py\n" + source) == [False]


def test_a_file_object_of_its_own_is_none_of_h5py() -> None:
    source = 'class File:\n    pass\ndef load(path):\n    file = File(path, "r+")\n    return file["x"][:]\n'
    assert modes(source) == [False]


@pytest.mark.parametrize("style", ["plain", "exact"])
def test_it_is_opened_to_be_read_on_all_ranks(style: str) -> None:
    path = Path("train.py")
    result = convert({path: RULE.before.replace('"r+"', "'r+'")}, "cpu", style=style)[path]
    assert "h5py.File(path, 'r')" in result.code and not [f for f in result.findings if f.severity == "refused"]


def test_one_that_is_not_seen_to_be_read_only_is_refused_with_a_remedy() -> None:
    path = Path("train.py")
    source = RULE.before.replace('file["x"][:]', 'np.zeros_like(file["x"])')
    found = [each for each in convert({path: source}, "cpu", style="plain")[path].findings if each.rule == "DDP607"]
    assert ['open it with "r"' in each.remedy for each in found] == [True]
