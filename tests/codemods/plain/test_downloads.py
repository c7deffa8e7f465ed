"""Downloads in the plain style: rank 0 goes first (DDP608)."""

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals

TRAINED = """\
import functools
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

{made}
loader = DataLoader(data, batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BEFORE = "if dist.get_rank() != 0:\n    dist.barrier()\n"
AFTER = "if dist.get_rank() == 0:\n    dist.barrier()\n"


@pytest.mark.parametrize("above", ["rate = 0.1\n", "rate = 0.1\n\n# MNIST\n", "rate = 0.1\n# MNIST\n\n"])
def test_the_guard_stands_directly_above_what_it_guards(above: str) -> None:
    made = 'data = datasets.MNIST("data", download=True)\n'
    assert f"{above}{BEFORE}{made}{AFTER}" in plain(TRAINED.format(made=above + made)).code


@pytest.mark.parametrize(
    "made",
    [
        "make = lambda train: datasets.MNIST('data', train=train, download=True)\n# data\ndata = make(True)\n",
        "make = functools.partial(datasets.MNIST, download=True)\ndata = make('data')\n",
        "make = functools.partial(lambda root: datasets.MNIST(root, download=True), 'data')\ndata = make()\n",
        "makers = {'a': lambda: datasets.MNIST('data', download=True)}\nassert 'a' in makers\ndata = makers['a']()\n",
        "makers = {}\nmakers['a'] = lambda: datasets.MNIST('data', download=True)\ndata = makers['a']()\n",
        "makers = {'a': lambda: datasets.MNIST('data', download=True)}\nmake = makers.get('a')\ndata = make()\n",
        "make = lambda: datasets.MNIST('data', download=True)\nother = lambda: make()\ndata = other()\n",
        "data = {'a': lambda: datasets.MNIST('data', download=True)}['a']()\n",
    ],
)
def test_what_a_function_downloads_is_guarded_where_that_is_called(made: str) -> None:
    above, data, call = made.rpartition("data = ")
    assert f"{above}{BEFORE}{data}{call}{AFTER}" in plain(TRAINED.format(made=made)).code


def test_a_class_that_hands_on_what_it_does_not_know() -> None:
    own = "class Digits(datasets.MNIST):\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n\n\n"
    made = "data = Digits(root='data', download=True)\n"
    code = plain(TRAINED.format(made=own + made)).code
    assert f"{own}{BEFORE}{made}{AFTER}" in code and code.count("dist.barrier()") == 2


@pytest.mark.parametrize(
    "made",
    [
        "data, *_ = map(lambda root: datasets.MNIST(root, download=True), ['data'])",
        "makers = [lambda: datasets.MNIST('data', download=True)]\nfor make in makers:\n    data = make()",
    ],
)
def test_a_function_that_is_called_elsewhere_is_refused(made: str) -> None:
    assert "where that is called is not seen" in refusals(plain(TRAINED.format(made=made)))[0]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import data", "data.MAKERS['a']()"),
        ("from data import MAKERS", "MAKERS['a']()"),
        ("from data import MAKERS as known", "known['a']()"),
        ("from data import *", "MAKERS['a']()"),
    ],
)
def test_another_file_calls_it(imports: str, call: str) -> None:
    script = TRAINED.format(made=f"{imports}\ndigits = {call}").replace("DataLoader(data", "DataLoader(digits")
    makers = "from torchvision import datasets\n\nMAKERS = {'a': lambda: datasets.MNIST('data', download=True)}\n"
    results = convert({Path("train.py"): script, Path("data.py"): makers}, "cpu", style="plain")
    assert f"{BEFORE}digits = {call}\n{AFTER}" in results[Path("train.py")].code
    assert results[Path("data.py")].code == makers


FETCHED = """\
import os
import tarfile
import urllib.request

def fetch(root):
    path = os.path.join(root, "digits")
    if not os.path.isdir(path):
        archive_path = path + ".tgz"
        if not os.path.isfile(archive_path):
            urllib.request.urlretrieve("https://example.org/digits.tgz", archive_path)
        with tarfile.open(archive_path) as archive:
            archive.extractall(root)
    return datasets.ImageFolder(path)


data = fetch("data")"""
RANK_0_FETCHES = """\
    if not from_rank_0(os.path.isdir(path)):
        archive_path = path + ".tgz"
        if not from_rank_0(os.path.isfile(archive_path)):
            if dist.get_rank() == 0:
                urllib.request.urlretrieve("https://example.org/digits.tgz", archive_path)
            dist.barrier()
        with tarfile.open(archive_path) as archive:
            if dist.get_rank() == 0:
                archive.extractall(root)
            dist.barrier()
"""


def test_what_would_fetch_again_is_fetched_by_rank_0_alone_and_all_ranks_see_it_missing() -> None:
    result = plain(TRAINED.format(made=FETCHED))
    assert not refusals(result) and RANK_0_FETCHES in result.code


def test_what_a_function_gives_back_is_downloaded_in_a_line_of_its_own() -> None:
    call = "datasets.MNIST('data', download=True,\n                          train=True)"
    made = f"def digits():\n    return {call}\n\n\ndata = digits()"
    code = plain(TRAINED.format(made=made)).code
    inner = [f"    {line}\n" for line in (*BEFORE.splitlines(), "data_ = datasets.MNIST('data', download=True,")]
    inner += ["                          train=True)\n"]
    inner += [f"    {line}\n" for line in (*AFTER.splitlines(), "return data_")]
    assert "def digits():\n" + "".join(inner) in code
